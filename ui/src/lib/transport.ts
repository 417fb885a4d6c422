/** The one door between the window and the engine. Nothing else in the front end calls Tauri's IPC. */
import { Channel, invoke } from '@tauri-apps/api/core';
import type { ClientMessage, ErrorCode, ProtocolError, ServerMessage } from '../wire';

/** What a `ServerMessage` of one type looks like. */
export type Reply<T extends ServerMessage['type']> = Extract<ServerMessage, { type: T }>;

/** What arrives unasked: a push, or the news that pushes were lost and must be read anew. */
export type Arrival = { kind: 'push'; message: ServerMessage } | { kind: 'missed' };

export interface Transport {
  /** Resolves once the engine can be asked; rejects with a {@link RequestFailure}. May be called again. */
  connect(): Promise<void>;
  /** Sends one request; rejects with a {@link RequestFailure} for an `error` reply. */
  request(message: ClientMessage): Promise<ServerMessage>;
  /** Hears every push from now on. */
  onPush(callback: (arrival: Arrival) => void): Promise<void>;
}

/** An `error` reply as an exception: what happened, what was kept, what to do. */
export class RequestFailure extends Error implements ProtocolError {
  readonly code: ErrorCode;
  readonly kept: string | null;
  readonly hint: string | null;

  constructor(error: ProtocolError) {
    super(error.message);
    this.name = 'RequestFailure';
    this.code = error.code;
    this.kept = error.kept;
    this.hint = error.hint;
  }
}

/** Makes something thrown presentable; whatever is not ours becomes an internal error. */
export function toProtocolError(thrown: unknown): ProtocolError {
  if (isProtocolError(thrown)) {
    return {
      code: thrown.code,
      message: thrown.message,
      kept: thrown.kept ?? null,
      hint: thrown.hint ?? null,
    };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: 'internal', message, kept: null, hint: null };
}

/** Sends a request and insists on the reply's type. */
export async function ask<T extends ServerMessage['type']>(
  transport: Transport,
  message: ClientMessage,
  type: T,
): Promise<Reply<T>> {
  const reply = await transport.request(message);
  if (reply.type !== type) {
    throw new RequestFailure({
      code: 'internal',
      message: `Correx answered “${message.type}” with “${reply.type}” instead of “${type}”.`,
      kept: null,
      hint: null,
    });
  }
  return reply as Reply<T>;
}

/** The transport of the desktop window. */
export function tauriTransport(): Transport {
  return {
    async connect() {
      try {
        await invoke('connect');
      } catch (thrown) {
        throw new RequestFailure(toProtocolError(thrown));
      }
    },
    async request(message) {
      let reply: ServerMessage;
      try {
        reply = await invoke<ServerMessage>('request', { message });
      } catch (thrown) {
        throw new RequestFailure(toProtocolError(thrown));
      }
      if (reply.type === 'error') throw new RequestFailure(reply);
      return reply;
    },
    async onPush(callback) {
      const channel = new Channel<Arrival>();
      channel.onmessage = callback;
      await invoke('subscribe', { channel });
    },
  };
}

function isProtocolError(thrown: unknown): thrown is ProtocolError {
  return (
    typeof thrown === 'object' &&
    thrown !== null &&
    typeof (thrown as ProtocolError).code === 'string' &&
    typeof (thrown as ProtocolError).message === 'string'
  );
}
