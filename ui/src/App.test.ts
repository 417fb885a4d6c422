import { clearMocks, mockIPC } from '@tauri-apps/api/mocks';
import { fireEvent, render, screen, waitFor, within } from '@testing-library/svelte';
import { afterEach, expect, it, vi } from 'vitest';
import App from './App.svelte';
import { aQuestion, aRun, aSession, aStage, aTurn } from './fixtures';
import { RequestFailure, type Arrival, type Transport } from './lib/transport';
import { drafts } from './stores/drafts.svelte';
import { inspector } from './stores/inspector.svelte';
import type {
  ClientMessage,
  ProtocolError,
  ServerMessage,
  SessionView,
  WorkflowView,
} from './wire';

afterEach(clearMocks);

const MODEL = {
  state: { kind: 'ready' },
  name: 'Tiny',
  location: '/m.gguf',
  architecture: null,
  quantization: null,
  device: 'CPU',
  context_window: null,
  parameters: null,
  file_bytes: null,
  sha256: null,
  notice: null,
  memory: null,
  next: null,
} as const;

/** An engine of one session; requests are recorded, and answered by `replies` where it knows one. */
function engine(
  session: SessionView,
  replies: Partial<
    Record<
      ClientMessage['type'],
      (message: ClientMessage) => ServerMessage | Promise<ServerMessage>
    >
  > = {},
) {
  const sent: ClientMessage[] = [];
  let hear: (arrival: Arrival) => void = () => {};
  const transport: Transport = {
    connect: vi.fn(() => Promise.resolve()),
    onPush(callback) {
      hear = callback;
      return Promise.resolve();
    },
    request(message) {
      sent.push(message);
      const reply = replies[message.type];
      if (reply) return Promise.resolve().then(() => reply(message));
      switch (message.type) {
        case 'get_overview':
          return Promise.resolve({
            type: 'overview',
            sessions: [session.summary],
            model: MODEL,
            examples: [],
            data_dir: '/data',
            version: '0',
          });
        case 'open_session':
          return Promise.resolve({ type: 'session', ...session });
        case 'measure_draft':
          return Promise.resolve({ type: 'draft', context: CONTEXT, refusal: null });
        default:
          return Promise.resolve({ type: 'done' });
      }
    },
  };
  return {
    transport,
    push: (message: ServerMessage) => hear({ kind: 'push', message }),
    missed: () => hear({ kind: 'missed' }),
    sent: (type: ClientMessage['type']) => sent.filter((message) => message.type === type),
  };
}

const CONTEXT = {
  title: 'Router',
  entries: [],
  template_tokens: 10,
  prompt_tokens: 10,
  reply_reserve: 512,
  budget_limit: 4096,
  reused_tokens: null,
  exact: true,
};

const RUN = aRun({
  stages: [
    aStage('extract', { status: 'done', attempt: 1 }),
    aStage('draft', { status: 'running', attempt: 1 }),
  ],
  current_stage: 'draft',
});

async function open(session: SessionView, replies = {}) {
  drafts.change('s', { text: '', pasted: '', mode: 'CHAT', target: 'onward' });
  inspector.show('run');
  const made = engine(session, replies);
  render(App, { props: { transport: made.transport } });
  const input = await screen.findByTestId<HTMLTextAreaElement>('composer-input');
  return {
    ...made,
    input,
    write: (text: string) => fireEvent.input(input, { target: { value: text } }),
  };
}

const LETTER: WorkflowView = {
  example: 'letter',
  name: 'Letter',
  description: 'Writes a letter.',
  inputs: [],
  stages: [{ stage_id: 'write', title: 'Write', kind: 'generate' }],
};

/** An overview with these examples. */
const offering = (examples: WorkflowView[]) => (): ServerMessage => ({
  type: 'overview',
  sessions: [aSession().summary],
  model: MODEL,
  examples,
  data_dir: '/data',
  version: '0',
});

const failure = (change: Partial<ProtocolError>) => () => {
  throw new RequestFailure({
    code: 'internal',
    message: 'It broke.',
    kept: null,
    hint: null,
    ...change,
  });
};

it('sends with Enter and empties the input', async () => {
  const { input, write, sent } = await open(aSession());
  await write('Hello');
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect(sent('chat_input')).toMatchObject([{ text: 'Hello', mode: 'CHAT', session_id: 's' }]);
  expect(input.value).toBe('');
});

it('does not send with Shift+Enter, nor while an input method composes', async () => {
  const { input, write, sent } = await open(aSession());
  await write('にほん');
  await fireEvent.keyDown(input, { key: 'Enter', shiftKey: true });
  await fireEvent.keyDown(input, { key: 'Enter', isComposing: true });
  await fireEvent.keyDown(input, { key: 'Enter', keyCode: 229 });
  expect(sent('chat_input')).toEqual([]);
});

it('sends nothing that is only blank', async () => {
  const { input, write, sent } = await open(aSession());
  await write('  \n ');
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect(sent('chat_input')).toEqual([]);
});

it('gives a refused message back, with what to do', async () => {
  const replies = { chat_input: failure({ message: 'Too long by 9 tokens.', hint: 'Cut it.' }) };
  const { input, write } = await open(aSession(), replies);
  await write('Hello');
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect((await screen.findByRole('alert')).textContent).toMatch(/Too long by 9 tokens.*Cut it\./s);
  await waitFor(() => expect(input.value).toBe('Hello'));
});

it('does not give a message back that was taken before its answer failed', async () => {
  const made = await open(aSession(), {
    chat_input: () => {
      made.push({ type: 'turn_changed', session_id: 's', turn: aTurn({ content: 'Hello' }) });
      return failure({})();
    },
  });
  await made.write('Hello');
  await fireEvent.keyDown(made.input, { key: 'Enter' });
  await screen.findByText('Hello');
  expect(made.input.value).toBe('');
  expect(screen.queryByRole('alert')).toBeNull();
});

it('shows a message that waits for the answer before it, until it is a turn', async () => {
  const made = await open(aSession({ run: RUN }), { chat_input: () => new Promise(() => {}) });
  await fireEvent.click(screen.getByTestId('mode-steer'));
  await made.write('Shorter');
  await fireEvent.keyDown(made.input, { key: 'Enter' });
  expect(screen.getByTestId('sending').textContent).toMatch('Shorter');
  made.push({ type: 'turn_changed', session_id: 's', turn: aTurn({ content: 'Shorter' }) });
  await waitFor(() => expect(screen.queryByTestId('sending')).toBeNull());
});

it('keeps a long paste out of the input and sends it with the message', async () => {
  const { input, write, sent } = await open(aSession());
  const long = 'word '.repeat(200_000);
  const paste = Object.assign(new Event('paste', { bubbles: true, cancelable: true }), {
    clipboardData: { getData: () => long },
  });
  await fireEvent(input, paste);
  expect(paste.defaultPrevented).toBe(true);
  expect(input.value).toBe('');
  expect(screen.getByTestId('pasted').textContent).toMatch('1,000,000 characters');
  await write('Sum this up:');
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect(sent('chat_input')).toMatchObject([{ text: `Sum this up:\n\n${long}` }]);
  expect(screen.queryByTestId('pasted')).toBeNull();
});

it('says that steering changes the run, and sends the note to what it names', async () => {
  const { input, write, sent } = await open(aSession({ run: RUN }));
  expect(screen.getByTestId('send').textContent).toMatch('Ask');
  await fireEvent.click(screen.getByTestId('mode-steer'));
  expect(screen.getByTestId('send').textContent).toMatch('Steer');
  expect(screen.getByTestId('mode-steer').getAttribute('aria-checked')).toBe('true');
  expect(screen.getByText('Changes the run')).toBeTruthy();
  await fireEvent.change(screen.getByTestId('steer-target'), { target: { value: 'stage' } });
  await write('Shorter');
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect(sent('chat_input')).toMatchObject([
    { text: 'Shorter', mode: 'STEERING', target: { stage_id: null, scope: 'stage' } },
  ]);
});

it('changes between asking and steering by keyboard', async () => {
  await open(aSession({ run: RUN }));
  const chord = { key: 'S', ctrlKey: true, shiftKey: true };
  await fireEvent.keyDown(window, chord);
  expect(screen.getByTestId('mode-steer').getAttribute('aria-checked')).toBe('true');
  await fireEvent.keyDown(screen.getByTestId('mode-steer'), { key: 'ArrowLeft' });
  expect(screen.getByTestId('mode-ask').getAttribute('aria-checked')).toBe('true');
});

it('cannot steer a plain chat', async () => {
  await open(aSession());
  expect(screen.getByTestId<HTMLButtonElement>('mode-steer').disabled).toBe(true);
  await fireEvent.keyDown(window, { key: 'S', ctrlKey: true, shiftKey: true });
  expect(screen.getByTestId('mode-ask').getAttribute('aria-checked')).toBe('true');
});

it('never turns a note into a question when the run ends before it is sent', async () => {
  const { input, write, sent, push } = await open(aSession({ run: RUN }));
  await fireEvent.click(screen.getByTestId('mode-steer'));
  await write('Shorter');
  push({ type: 'run_changed', session_id: 's', run: { ...RUN, status: 'COMPLETED' } });
  await screen.findByText(/a note can no longer act/);
  await fireEvent.keyDown(input, { key: 'Enter' });
  expect(sent('chat_input')).toEqual([]);
  expect(input.value).toBe('Shorter');
});

it('streams an answer and stops it with Escape', async () => {
  const { push, sent } = await open(aSession());
  const turn = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'pending' });
  push({ type: 'turn_changed', session_id: 's', turn });
  push({ type: 'reply_progress', session_id: 's', turn_id: 'r', done: 320, total: 1204 });
  await screen.findByText('Reading 320 of 1,204 tokens');
  push({ type: 'reply_delta', session_id: 's', turn_id: 'r', text: 'So **far**', tokens: 2 });
  await screen.findByText('far');
  await fireEvent.keyDown(window, { key: 'Escape' });
  expect(sent('stop_reply')).toHaveLength(1);
});

it('folds what is thought, shows it when asked, and does not announce it', async () => {
  const { push } = await open(aSession());
  const live = () => document.querySelector('[aria-live="polite"]')?.textContent;
  const turn = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'pending' });
  const piece = { session_id: 's', turn_id: 'r' };
  push({ type: 'turn_changed', session_id: 's', turn });
  push({ type: 'thinking_delta', ...piece, text: 'Two <b>and</b> two', tokens: 4 });
  const fold = await screen.findByText('Thinking… 4 tokens');
  expect(screen.queryByText('Two <b>and</b> two')).toBeNull();
  expect(screen.queryByText(/^Writing/)).toBeNull();
  await fireEvent.click(fold);
  await screen.findByText('Two <b>and</b> two');
  push({ type: 'reply_delta', ...piece, text: 'Four', tokens: 5 });
  await screen.findByText('Thought for 4 tokens');
  expect(screen.getByText('Two <b>and</b> two')).toBeTruthy();
  const thinking = { text: 'Two <b>and</b> two', tokens: 4 };
  push({
    type: 'turn_changed',
    session_id: 's',
    turn: { ...turn, status: 'complete', content: 'Four', thinking },
  });
  await waitFor(() => expect(live()).toBe('Four'));
});

it('says that an answer which was stopped while it was thinking is none', async () => {
  const thinking = { text: 'Two', tokens: 1 };
  const turn = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'stopped', thinking });
  await open(aSession({ turns: [turn] }));
  expect(screen.getByText(/Stopped while it was thinking/)).toBeTruthy();
});

it('tells a stage that thinks from one that writes, and opens the thinking of a draft', async () => {
  const draft = aStage('draft', {
    status: 'running',
    attempt: 2,
    drafts: [
      {
        attempt: 1,
        reason: 'refused',
        draft: null,
        thinking: { hash: 'h-thought', tokens: 8 },
      },
    ],
  });
  const { push, sent } = await open(
    aSession({ run: aRun({ stages: [draft], current_stage: 'draft' }) }),
    { read_blob: () => ({ type: 'blob', hash: 'h-thought', text: 'Two and two' }) },
  );
  const progress = {
    type: 'stage_progress',
    session_id: 's',
    stage_id: 'draft',
    attempt: 2,
    prompt_done: 10,
    prompt_total: 10,
    max_tokens: 256,
  } as const;
  push({ ...progress, tokens: 3, thinking_tokens: 3, thinking: 'Hm', text: '' });
  await screen.findByText('Thinking · 3 of at most 256 tokens');
  push({ ...progress, tokens: 4, thinking_tokens: 3, thinking: '', text: 'Four' });
  await screen.findByText('Writing · 4 of at most 256 tokens');
  expect(screen.getByText('Thought for 3 tokens')).toBeTruthy();
  await fireEvent.click(screen.getByText('View its thinking'));
  await screen.findByText('Two and two');
  expect(sent('read_blob')).toMatchObject([{ hash: 'h-thought' }]);
});

it('announces an answer once, when it is whole', async () => {
  const { push } = await open(aSession());
  const live = () => document.querySelector('[aria-live="polite"]')?.textContent;
  const turn = aTurn({ turn_id: 'r', role: 'ROUTER', status: 'pending' });
  push({ type: 'turn_changed', session_id: 's', turn });
  push({ type: 'reply_delta', session_id: 's', turn_id: 'r', text: 'Half', tokens: 1 });
  await screen.findByText('Half');
  expect(live()).toBe('');
  push({
    type: 'turn_changed',
    session_id: 's',
    turn: { ...turn, status: 'complete', content: 'Half and whole' },
  });
  await waitFor(() => expect(live()).toBe('Half and whole'));
});

it('shows a stage’s status and asks before it ends a run', async () => {
  const { sent } = await open(aSession({ run: RUN }));
  const stages = screen.getAllByTestId('stage');
  expect(stages.map((stage) => stage.dataset['status'])).toEqual(['done', 'running']);
  await fireEvent.click(screen.getByTestId('cancel-run'));
  expect(sent('cancel_run')).toEqual([]);
  await fireEvent.click(screen.getByTestId('confirm-cancel'));
  expect(sent('cancel_run')).toHaveLength(1);
});

it('tells a stage that was passed over from one that is done', async () => {
  const stages = [aStage('a', { status: 'done' }), aStage('b', { status: 'skipped' })];
  await open(aSession({ run: aRun({ status: 'COMPLETED', stages }) }));
  expect(screen.getByText(/1 of 2 stages done · 1 passed over/)).toBeTruthy();
  expect(screen.getByText('Passed over: its condition did not hold')).toBeTruthy();
});

it('says that a run has ended only when it has, also where no note can act', async () => {
  const stages = [aStage('save', { kind: 'write', status: 'waiting' })];
  const waiting = aRun({ status: 'PAUSED', waiting_for: 'approval', stages });
  await open(aSession({ run: waiting }));
  expect(screen.queryByText(/The run has ended/)).toBeNull();
  expect(screen.getByText(/asks a model/)).toBeTruthy();
});

it('says in an empty talk that the run has ended', async () => {
  await open(aSession({ run: aRun({ status: 'COMPLETED' }) }));
  expect(screen.getByText(/The run has ended; you can still ask/)).toBeTruthy();
});

it('changes a note until a stage was shown it, and keeps the text when that is refused', async () => {
  const note = {
    content: 'Be brief.',
    stage_id: null,
    scope: 'onward' as const,
    withdrawn: false,
    at: '2026-11-30T10:00:00Z',
  };
  const notes = [
    { ...note, note_id: 'fresh', applied: [] },
    { ...note, note_id: 'used', applied: [{ stage_id: 'ok', attempt: 1 }] },
  ];
  const run = aRun({ stages: [aStage('ok', { status: 'running' })], notes, current_stage: 'ok' });
  let taken = false;
  const { sent } = await open(aSession({ run }), {
    edit_note: () => {
      if (taken) return { type: 'done' };
      return failure({ code: 'cannot_steer', message: 'the note was already used' })();
    },
  });
  expect(screen.getAllByText('Edit')).toHaveLength(1);
  await fireEvent.click(screen.getByText('Edit'));
  const box = screen.getByTestId('note-text');
  expect((box as HTMLTextAreaElement).value).toBe('Be brief.');
  await fireEvent.input(box, { target: { value: ' Be very brief. ' } });
  await fireEvent.click(screen.getByText('Save'));
  expect(await screen.findByText(/already used/)).toBeTruthy();
  expect(screen.getByTestId('note-text')).toBeTruthy();
  taken = true;
  await fireEvent.click(screen.getByText('Save'));
  await waitFor(() => expect(screen.queryByTestId('note-text')).toBeNull());
  expect(sent('edit_note')).toMatchObject([
    { note_id: 'fresh', content: 'Be very brief.' },
    { note_id: 'fresh', content: 'Be very brief.' },
  ]);
});

it('rejects with the reason that the person gives', async () => {
  const stage = aStage('ok', {
    kind: 'approve',
    status: 'waiting',
    question: aQuestion(),
  });
  const run = aRun({ status: 'PAUSED', waiting_for: 'approval', stages: [stage] });
  const { sent } = await open(aSession({ run }));
  await fireEvent.click(screen.getByTestId('deny'));
  const box = within(screen.getByTestId('approval')).getByRole('textbox');
  await fireEvent.input(box, { target: { value: ' wrong date ' } });
  await fireEvent.click(screen.getByTestId('confirm-deny'));
  expect(sent('deny')).toMatchObject([{ stage_id: 'ok', reason: 'wrong date' }]);
});

it('approves the version that the person has made of the text', async () => {
  const question = aQuestion({ artifact: 'hash' });
  const stage = aStage('ok', { kind: 'approve', status: 'waiting', question });
  const run = aRun({ status: 'PAUSED', waiting_for: 'approval', stages: [stage] });
  const { sent } = await open(aSession({ run }), {
    read_blob: () => ({ type: 'blob', hash: 'hash', text: 'Theirs' }),
  });
  await fireEvent.click(screen.getByTestId('edit'));
  const box = await screen.findByTestId('edited');
  expect((box as HTMLTextAreaElement).value).toBe('Theirs');
  await fireEvent.input(box, { target: { value: 'Mine.' } });
  await fireEvent.click(screen.getByText('Approve your version'));
  expect(sent('approve')).toMatchObject([{ stage_id: 'ok', edited: 'Mine.' }]);
});

it('says what a yes lets a stage do, and offers no change of it', async () => {
  const question = aQuestion({ artifact: 'new', before: 'old', cause: 'existing' });
  const stage = aStage('save', { kind: 'write', status: 'waiting', question });
  const run = aRun({ status: 'PAUSED', waiting_for: 'approval', stages: [stage] });
  const { sent } = await open(aSession({ run }));
  expect(screen.getByText('In its place there is now:')).toBeTruthy();
  expect(screen.queryByTestId('edit')).toBeNull();
  await fireEvent.click(screen.getByText('Replace the file'));
  expect(sent('approve')).toMatchObject([{ stage_id: 'save', edited: null }]);
});

it('shows what a stage did outside, and runs an ended run again from it', async () => {
  const effect = {
    kind: 'command',
    target: '/usr/bin/pandoc -o a.pdf',
    attempt: 1,
    state: 'failed',
    message: 'It failed.',
    output: null,
  } as const;
  const stage = aStage('make', {
    kind: 'command',
    status: 'failed',
    attempt: 1,
    effects: [effect],
    policy: [{ action: 'run pandoc', asks: false, rule: 'policy.toml: [[command]] 1 (pandoc)' }],
  });
  const { sent } = await open(aSession({ run: aRun({ status: 'FAILED', stages: [stage] }) }));
  expect(screen.getByTestId('effect').textContent).toMatch(/Failed\s+\/usr\/bin\/pandoc/);
  expect(screen.getByText(/Allowed, by policy.toml/)).toBeTruthy();
  await fireEvent.click(screen.getByTestId('rerun'));
  expect(sent('rerun')).toMatchObject([{ session_id: 's', stage_id: 'make' }]);
});

it('keeps a deleted session until the time for undo is over', async () => {
  const { sent } = await open(aSession());
  await fireEvent.click(screen.getByLabelText('Delete “A session”'));
  expect(within(screen.getByTestId('session-list')).queryByText('A session')).toBeNull();
  await fireEvent.click(screen.getByText('Undo'));
  expect(within(screen.getByTestId('session-list')).getByText('A session')).toBeTruthy();
  expect(sent('delete_session')).toEqual([]);
});

it('reads everything again when pushes were lost', async () => {
  const { sent, missed } = await open(aSession());
  missed();
  await waitFor(() => expect(sent('open_session')).toHaveLength(2));
  expect(sent('get_overview')).toHaveLength(2);
});

it('says why it could not start and tries again', async () => {
  const made = engine(aSession());
  vi.mocked(made.transport.connect).mockImplementationOnce(failure({ message: 'Read-only.' }));
  render(App, { props: { transport: made.transport } });
  await screen.findByText('Read-only.');
  await fireEvent.click(screen.getByTestId('retry-start'));
  await screen.findByTestId('composer-input');
});

it('shows HTML in titles as text', async () => {
  const title = '<img src=x onerror=alert(1)>';
  const session = aSession();
  await open({ ...session, summary: { ...session.summary, title } });
  expect(screen.getAllByText(title).length).toBeGreaterThan(0);
  expect(document.querySelector('img')).toBeNull();
});

it('offers a choice as a list and a number with its range, with their defaults', async () => {
  const session = aSession();
  const input = {
    description: '',
    required: true,
    sample: null,
    default: null,
    choices: [],
    min: null,
    max: null,
  };
  const { transport, sent } = engine(session, {
    get_overview: offering([
      {
        ...LETTER,
        inputs: [
          { ...input, name: 'tone', kind: 'choice', choices: ['plain', 'warm'], default: 'warm' },
          { ...input, name: 'lines', kind: 'number', min: 1, max: 20 },
        ],
      },
    ]),
    create_session: () => ({ type: 'session', ...session }),
  });
  render(App, { transport });
  await fireEvent.click(await screen.findByTestId('new-session'));

  const tone = await screen.findByTestId('input-choice');
  expect((tone as HTMLSelectElement).value).toBe('warm');
  expect(within(tone).getAllByRole('option', { hidden: true })).toHaveLength(2);
  await fireEvent.change(tone, { target: { value: 'plain' } });
  const lines = screen.getByTestId('input-number');
  expect(lines.getAttribute('min')).toBe('1');
  expect(lines.getAttribute('max')).toBe('20');
  const create = screen.getByTestId('create-session') as HTMLButtonElement;
  expect(create.disabled).toBe(true);
  await fireEvent.input(lines, { target: { value: '7' } });
  expect(create.disabled).toBe(false);
  await fireEvent.click(create);

  await waitFor(() => expect(sent('create_session')).toHaveLength(1));
  expect(sent('create_session')[0]).toMatchObject({
    inputs: [
      { kind: 'text', name: 'tone', text: 'plain' },
      { kind: 'text', name: 'lines', text: '7' },
    ],
  });
});

/** The dialog for a new workflow, opened from the one for a new session. */
async function beginWorkflow(replies: Parameters<typeof engine>[1]) {
  mockIPC((command) => (command === 'plugin:dialog|open' ? '/home/ada/work' : null));
  const brief = { ...LETTER, example: 'brief', name: 'Brief', description: 'Sums a report up.' };
  const made = engine(aSession(), { get_overview: offering([LETTER, brief]), ...replies });
  render(App, { transport: made.transport });
  await fireEvent.click(await screen.findByTestId('new-session'));
  const entry = screen.getByRole('button', { name: /^New workflow…/ });
  await fireEvent.click(entry);
  const dialog = within(screen.getByRole('dialog', { name: 'New workflow' }));
  return {
    ...made,
    entry,
    dialog,
    save: dialog.getByRole<HTMLButtonElement>('button', { name: 'Save' }),
    name: dialog.getByRole<HTMLInputElement>('textbox', { name: 'Name' }),
    folder: dialog.getByRole<HTMLInputElement>('textbox', { name: 'Save in' }),
  };
}

it('saves a copy of an example where the person says, and goes on with that file', async () => {
  const path = '/home/ada/work/my letter/workflow.toml';
  const { dialog, save, name, folder, sent } = await beginWorkflow({
    copy_example: () => ({ type: 'copied', path }),
    check_workflow: () => ({ type: 'workflow', ...LETTER, example: null, name: 'Mine now' }),
    create_session: () => ({ type: 'session', ...aSession() }),
  });
  const brief = dialog.getByRole('radio', { name: /^Brief\s+Sums a report up/ });
  expect(document.activeElement).toBe(dialog.getByRole('radio', { name: /^Letter/ }));
  expect(name.value).toBe('letter');
  await fireEvent.click(brief);
  expect(name.value).toBe('brief');
  expect(save.disabled).toBe(true);
  await fireEvent.click(dialog.getByRole('button', { name: 'Browse for the folder' }));
  await waitFor(() => expect(folder.value).toBe('/home/ada/work'));
  await fireEvent.input(name, { target: { value: ' my letter ' } });
  await fireEvent.click(save);

  await screen.findByText('Mine now');
  expect(sent('copy_example')).toEqual([
    { type: 'copy_example', example: 'brief', folder: '/home/ada/work', name: 'my letter' },
  ]);
  expect(screen.queryByTestId('new-workflow-dialog')).toBeNull();
  const field = screen.getByTestId<HTMLInputElement>('workflow-path');
  expect(field.value).toBe(path);
  expect(document.activeElement).toBe(field);
  expect(screen.getByTestId('workflow-saved').textContent).toMatch(path);
  await fireEvent.click(screen.getByTestId('create-session'));
  expect(sent('create_session')).toMatchObject([{ workflow: { kind: 'file', path } }]);
});

it('says that a file is there already and keeps what was chosen', async () => {
  let tries = 0;
  const path = '/home/ada/work/other/workflow.toml';
  const { dialog, save, name, folder, sent } = await beginWorkflow({
    copy_example: () =>
      tries++ === 0
        ? failure({ message: 'It is there already.', kept: 'It is unchanged.' })()
        : { type: 'copied', path },
    check_workflow: () => ({ type: 'workflow', ...LETTER, example: null }),
  });
  await fireEvent.click(dialog.getByRole('radio', { name: /^Brief/ }));
  await fireEvent.input(folder, { target: { value: '/home/ada/work' } });
  await fireEvent.click(save);
  const alert = await dialog.findByRole('alert');
  expect(alert.textContent).toMatch(/It is there already\..*It is unchanged\./s);
  expect(dialog.getByRole<HTMLInputElement>('radio', { name: /^Brief/ }).checked).toBe(true);
  expect([name.value, folder.value]).toEqual(['brief', '/home/ada/work']);
  expect(sent('check_workflow')).toEqual([]);

  await fireEvent.input(name, { target: { value: 'other' } });
  await fireEvent.click(save);
  await screen.findByTestId('workflow-saved');
  expect(sent('copy_example')).toHaveLength(2);
});

it('makes nothing when the dialog is closed, and gives the focus back', async () => {
  const { dialog, entry, sent } = await beginWorkflow({});
  await fireEvent.click(dialog.getByRole('button', { name: 'Cancel' }));
  await waitFor(() => expect(screen.queryByTestId('new-workflow-dialog')).toBeNull());
  expect(document.activeElement).toBe(entry);
  expect(screen.getByTestId('new-session-dialog')).toBeTruthy();
  expect(sent('copy_example')).toEqual([]);
});

it('shows the file also when the dialog was closed before it was made', async () => {
  const path = '/home/ada/work/letter/workflow.toml';
  let finish = (_reply: ServerMessage) => {};
  const answer = new Promise<ServerMessage>((resolve) => (finish = resolve));
  const { dialog, save, folder } = await beginWorkflow({
    copy_example: () => answer,
    check_workflow: () => ({ type: 'workflow', ...LETTER, example: null }),
  });
  await fireEvent.input(folder, { target: { value: '/home/ada/work' } });
  await fireEvent.click(save);
  await fireEvent.click(dialog.getByRole('button', { name: 'Close' }));
  finish({ type: 'copied', path });
  expect((await screen.findByTestId('workflow-saved')).textContent).toMatch(path);
});
