/** The operation was refused, and nothing was changed. */
export class NotDone extends Error {
  override readonly name = 'NotDone';
  readonly statusCode: 400 | 403 | 404 | 409 | 410 | 412 | 422;
  constructor(statusCode: NotDone['statusCode'], message: string, cause?: unknown) {
    super(message, { cause });
    this.statusCode = statusCode;
  }
}
