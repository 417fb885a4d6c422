/** Puts a made-up engine in place of Tauri's, then starts the real front end. */
import { mockIPC, mockWindows } from '@tauri-apps/api/mocks';
import type { Channel } from '@tauri-apps/api/core';
import type { Arrival } from '../src/lib/transport';
import type { ClientMessage } from '../src/wire';
import { makeEngine } from './engine';

const engine = makeEngine(new URLSearchParams(location.search).get('scene') ?? 'running');

mockWindows('main');
mockIPC(async (command, payload) => {
  const args = (payload ?? {}) as Record<string, unknown>;
  switch (command) {
    case 'connect':
      return engine.connect();
    case 'request':
      return engine.request(args['message'] as ClientMessage);
    case 'subscribe': {
      const channel = args['channel'] as Channel<Arrival>;
      engine.onPush((message) => channel.onmessage({ kind: 'push', message }));
      return null;
    }
    case 'plugin:dialog|open':
      return (args['options'] as { directory?: boolean }).directory
        ? '/home/ada/workflows'
        : '/home/ada/workflows/brief.toml';
    default:
      throw new Error(`the preview has no command ${command}`);
  }
});

await import('../src/main');
