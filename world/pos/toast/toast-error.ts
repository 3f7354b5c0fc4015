/** An error answer: https://doc.toasttab.com/doc/devguide/apiResponsesAndErrors.html */
export class ToastError extends Error {
  readonly status: number;
  /** Seconds. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, { retryAfter }: { retryAfter?: number } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }

  body(requestId: string): object {
    const { status, message } = this;
    const unused = { messageKey: null, fieldName: null, link: null, developerMessage: null, canRetry: null };
    return { status, code: 10_000 + status, message, requestId, errors: [], ...unused };
  }
}
