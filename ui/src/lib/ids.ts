/** An id for one message, so that sending it twice acts once. */
export function freshMessageId(): string {
  return crypto.randomUUID();
}
