import { status, type handleUnaryCall } from '@grpc/grpc-js';

/** An error of a handler. The caller sees it as a gRPC status. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: status;
  readonly details: string;

  constructor(code: status, details: string) {
    super(details);
    this.code = code;
    this.details = details;
  }
}

/** Wraps a function that returns its answer, or throws a `Refusal`, as the handler of a gRPC call. */
export function unary<Request>(
  handle: (request: Request) => object | Promise<object>,
): handleUnaryCall<Request, object> {
  async function settle(request: Request): Promise<[Refusal | null, object?]> {
    try {
      return [null, await handle(request)];
    } catch (error) {
      return [error instanceof Refusal ? error : new Refusal(status.INTERNAL, String(error))];
    }
  }
  return (call, callback) => {
    void settle(call.request).then((settled) => callback(...settled)); // oxlint-disable-line promise/no-callback-in-promise
  };
}
