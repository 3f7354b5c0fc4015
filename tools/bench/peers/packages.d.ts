// The used parts of the peers' packages. The packages are not installed with the project, so types are declared here.

declare module 'node-red' {
  import type { RequestListener } from 'node:http';
  const RED: { init(settings: object): void; start(): Promise<void>; readonly httpNode: RequestListener };
  export default RED;
}

declare module 'pg-boss' {
  export class PgBoss {
    constructor(options: object);
    on(event: 'error', listener: (error: Error) => void): this;
    start(): Promise<this>;
    createQueue(name: string): Promise<void>;
    send(name: string, data: object): Promise<string | null>;
  }
}

declare module 'graphile-worker' {
  import type { Pool } from 'pg';
  export function makeWorkerUtils(options: { pgPool: Pool }): Promise<{
    migrate(): Promise<void>;
    addJob(task: string, payload: object): Promise<object>;
  }>;
}
