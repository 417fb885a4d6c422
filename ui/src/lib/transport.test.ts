import { clearMocks, mockIPC } from '@tauri-apps/api/mocks';
import type { Channel } from '@tauri-apps/api/core';
import { afterEach, expect, it } from 'vitest';
import { ask, RequestFailure, tauriTransport, toProtocolError, type Arrival } from './transport';

afterEach(clearMocks);

const error = {
  code: 'input_too_long',
  message: 'Too long.',
  kept: 'The message.',
  hint: 'Shorten it.',
} as const;

it('passes a request on as it is and returns the reply', async () => {
  const seen: unknown[] = [];
  mockIPC((command, payload) => {
    seen.push([command, payload]);
    return { type: 'done' };
  });
  await expect(tauriTransport().request({ type: 'stop_reply', session_id: 's' })).resolves.toEqual({
    type: 'done',
  });
  expect(seen).toEqual([['request', { message: { type: 'stop_reply', session_id: 's' } }]]);
});

it('throws an error reply with what was kept and what to do', async () => {
  mockIPC(() => ({ type: 'error', ...error }));
  const thrown = await tauriTransport()
    .request({ type: 'get_overview' })
    .catch((reason: unknown) => reason);
  expect(thrown).toBeInstanceOf(RequestFailure);
  expect(toProtocolError(thrown)).toEqual(error);
});

it('throws what the shell refuses in the same form', async () => {
  mockIPC(() => Promise.reject(error));
  await expect(tauriTransport().connect()).rejects.toMatchObject(error);
});

it('makes anything else thrown an internal error', () => {
  expect(toProtocolError('gone')).toEqual({
    code: 'internal',
    message: 'gone',
    kept: null,
    hint: null,
  });
});

it('does not take one reply for another', async () => {
  mockIPC(() => ({ type: 'done' }));
  await expect(ask(tauriTransport(), { type: 'get_overview' }, 'overview')).rejects.toThrow(
    'get_overview',
  );
});

it('hears pushes in the order in which they come', async () => {
  let channel: Channel<Arrival> | undefined;
  mockIPC((command, payload) => {
    expect(command).toBe('subscribe');
    channel = (payload as { channel: Channel<Arrival> }).channel;
  });
  const heard: Arrival[] = [];
  await tauriTransport().onPush((arrival) => heard.push(arrival));
  const push = { kind: 'push', message: { type: 'session_deleted', session_id: 's' } } as const;
  channel?.onmessage(push);
  channel?.onmessage({ kind: 'missed' });
  expect(heard).toEqual([push, { kind: 'missed' }]);
});
