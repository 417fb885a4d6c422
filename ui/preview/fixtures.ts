/** What the made-up engine knows. */
import type {
  ContextView,
  ModelView,
  Overview,
  RunView,
  SessionSummary,
  SessionView,
  StageView,
  TurnView,
  WorkflowView,
} from '../src/wire';

const start = Date.now() - 95_000;
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();

export const texts = {
  reply:
    'The run is in its second stage of four:\n\n- **Extract** finished and listed eleven points.\n- **Draft** is being written now, its second attempt.\n- **Check** and **Approve** have not started.\n\nI see summaries of the stages, not your notes themselves.',
  thinking:
    'A day has 24 hours, an hour 60 minutes, a minute 60 seconds.\n\n24 × 60 = 1,440 minutes; 1,440 × 60 = 86,400 seconds in a day. A week has seven of them: 86,400 × 7 = 604,800. Leap seconds can be left out here.',
  draft:
    'The launch moves to 3 July. The team agreed on Monday that the import of old projects needs two more weeks, and that nothing else has to wait for it. Mira takes over the help pages; Jonas keeps the price list, which changes on the same day. Open is who writes to the customers that were promised June, and whether the offer for schools starts with the launch or after it. The next meeting is on the 14th, with the numbers of the trial.',
  artifact:
    '# Points\n\n1. The launch moves to **3 July**; the import needs two more weeks.\n2. Mira takes over the help pages.\n3. Jonas keeps the price list.\n\n| who | what | until |\n| --- | --- | ---: |\n| Mira | help pages | 21 June |\n| Jonas | price list | 3 July |\n\n> Open: who writes to the customers that were promised June?',
  events: [
    ['session_created', 0],
    ['inputs_captured', 0],
    ['workflow_started', 1],
    ['stage_started', 1],
    ['context_assembled', 1],
    ['inference_completed', 18],
    ['artifact_produced', 18],
    ['stage_completed', 19],
    ['stage_started', 19],
    ['steering_note_added', 48],
    ['stage_restarted', 48],
    ['steering_note_applied', 49],
    ['context_assembled', 49],
  ].map(([type, seconds], index) =>
    JSON.stringify({
      event_id: `e-${index + 1}`,
      session_id: 's-launch',
      sequence: index + 1,
      timestamp: at(Number(seconds)),
      payload: { type },
    }),
  ),
};

export const model: ModelView = {
  state: { kind: 'ready' },
  name: 'SmolLM2 135M Instruct',
  location: '/home/ada/correx/models/SmolLM2-135M-Instruct.Q4_1.gguf',
  architecture: 'llama',
  quantization: 'Q4_1',
  device: 'CPU',
  context_window: 8192,
  parameters: 134_515_008,
  file_bytes: 98_362_432,
  sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
  notice: 'A small model for trying things out: it makes mistakes that larger ones do not make.',
  memory: {
    need: 541_000_000,
    forms: 18_000_000,
    weights: 99_000_000,
    vocabulary: 38_000_000,
    cache: 377_000_000,
    scratch: 27_000_000,
    held: 320_000_000,
    available: 9_000_000_000,
  },
  next: null,
};

export const failedModel: ModelView = {
  ...model,
  state: {
    kind: 'failed',
    error: {
      code: 'model',
      message: 'There is no model at /home/ada/correx/models/SmolLM2-135M-Instruct.Q4_1.gguf.',
      kept: 'Your sessions are all here; only answers and runs need the model.',
      hint: 'Run `cargo xtask setup`, or set CORREX_MODEL to a GGUF file and start Correx again.',
    },
  },
};

export function contextView(title: string): ContextView {
  const entry = (
    layer: 'L0' | 'L1' | 'L2',
    source: string,
    tokens: number,
    dropped: string | null = null,
  ) => ({ layer, source, tokens, text: `The text of: ${source}.`, hash: null, dropped });
  return {
    title,
    entries: [
      entry('L0', 'rules', 214),
      entry('L2', 'Extract, done', 61),
      entry('L1', 'exchange 1', 310, 'oldest exchange, no room'),
      entry('L1', 'exchange 2', 402),
      entry('L1', 'exchange 3', 287),
      entry('L0', 'status and notes', 121),
    ],
    template_tokens: 26,
    prompt_tokens: 1111,
    reply_reserve: 512,
    budget_limit: 4096,
    reused_tokens: 902,
    exact: true,
  };
}

export const examples: WorkflowView[] = [
  {
    example: 'meeting',
    name: 'Meeting notes',
    description: 'From rough notes to a summary, a list of actions, and an e-mail to everybody.',
    inputs: [
      {
        name: 'notes',
        kind: 'text',
        description: 'What was written down in the meeting.',
        required: true,
        sample:
          'Monday, launch meeting. Present: Mira, Jonas, Ada.\n- import of old projects needs 2 more weeks -> launch 3 July\n- Mira: help pages\n- Jonas: price list, changes same day\n- who writes to the customers promised June?',
        default: null,
        choices: [],
        min: null,
        max: null,
      },
    ],
    stages: [
      { stage_id: 'summary', title: 'Summary', kind: 'generate' },
      { stage_id: 'actions', title: 'Actions', kind: 'generate' },
      { stage_id: 'ok', title: 'Approve', kind: 'approve' },
      { stage_id: 'mail', title: 'E-mail', kind: 'generate' },
    ],
  },
  {
    example: 'brief',
    name: 'Document to brief',
    description: 'From a long document to an outline and a brief of one page.',
    inputs: [
      {
        name: 'document',
        kind: 'file',
        description: 'A text or Markdown file.',
        required: true,
        sample: null,
        default: null,
        choices: [],
        min: null,
        max: null,
      },
    ],
    stages: [
      { stage_id: 'outline', title: 'Outline', kind: 'generate' },
      { stage_id: 'brief', title: 'Brief', kind: 'generate' },
    ],
  },
];

const summaries: SessionSummary[] = [
  {
    session_id: 's-launch',
    title: 'Launch notes → brief',
    workflow: 'Meeting notes',
    status: 'RUNNING',
    waiting_for: null,
    current_stage: 'Draft',
    stages_done: 1,
    stages_total: 4,
    updated_at: at(90),
  },
  {
    session_id: 's-invoices',
    title: 'Invoices of May',
    workflow: 'Document to brief',
    status: 'PAUSED',
    waiting_for: 'approval',
    current_stage: 'Approve',
    stages_done: 2,
    stages_total: 4,
    updated_at: at(60),
  },
  {
    session_id: 's-interview',
    title: 'Interview translation',
    workflow: 'Document to brief',
    status: 'PAUSED',
    waiting_for: 'interrupted',
    current_stage: 'Brief',
    stages_done: 1,
    stages_total: 2,
    updated_at: at(-7000),
  },
  {
    session_id: 's-contract',
    title: 'Contract, 62 pages',
    workflow: 'Document to brief',
    status: 'COMPLETED',
    waiting_for: null,
    current_stage: null,
    stages_done: 2,
    stages_total: 2,
    updated_at: at(-90_000),
  },
  {
    session_id: 's-chat',
    title: 'What is a token?',
    workflow: null,
    status: 'IDLE',
    waiting_for: null,
    current_stage: null,
    stages_done: 0,
    stages_total: 0,
    updated_at: at(-180_000),
  },
];

export function overview(scene: string): Overview {
  const first: Record<string, string> = { approval: 's-invoices', chat: 's-chat' };
  const wanted = first[scene];
  const sessions = scene === 'empty' || scene === 'no-model' ? [] : summaries;
  return {
    sessions: sessions.map((row) =>
      row.session_id === wanted ? { ...row, updated_at: at(94) } : row,
    ),
    model:
      scene === 'no-model'
        ? failedModel
        : scene === 'loading'
          ? { ...model, state: { kind: 'loading', fraction: 0.42 } }
          : model,
    examples,
    data_dir: '/home/ada/.local/share/correx',
    version: '0.1.0',
  };
}

function stage(stage_id: string, title: string, change: Partial<StageView> = {}): StageView {
  return {
    stage_id,
    title,
    kind: 'generate',
    status: 'pending',
    attempt: 0,
    started_at: null,
    duration_ms: null,
    words: null,
    output_tokens: null,
    artifacts: [],
    drafts: [],
    pieces: null,
    thinking: null,
    question: null,
    policy: [],
    effects: [],
    error: null,
    context: null,
    ...change,
  };
}

const done: Partial<StageView> = {
  status: 'done',
  attempt: 1,
  started_at: at(1),
  duration_ms: 18_000,
  words: 131,
  output_tokens: 204,
  context: contextView('Extract, attempt 1'),
  artifacts: [
    { name: 'points', hash: 'h-points', bytes: 2100, media_type: 'text/markdown', attempt: 1 },
  ],
};

const run: RunView = {
  status: 'RUNNING',
  waiting_for: null,
  failure: null,
  current_stage: 'draft',
  stages: [
    stage('extract', 'Extract', done),
    stage('draft', 'Draft', {
      status: 'running',
      attempt: 2,
      started_at: at(19),
      context: contextView('Draft, attempt 2'),
      drafts: [{ attempt: 1, reason: 'a steering note came', draft: 'h-draft', thinking: null }],
    }),
    stage('check', 'Check'),
    stage('approve', 'Approve', { kind: 'approve' }),
  ],
  notes: [
    {
      note_id: 'n-1',
      content: 'Keep it under 120 words and lead with the new date.',
      stage_id: 'draft',
      scope: 'onward',
      withdrawn: false,
      applied: [{ stage_id: 'draft', attempt: 2 }],
      at: at(48),
    },
  ],
  inputs: [{ name: 'notes', path: null, hash: 'h-notes', bytes: 5210 }],
  last_event: 13,
  started_at: at(1),
  ended_at: null,
};

const waiting: RunView = {
  ...run,
  status: 'PAUSED',
  waiting_for: 'approval',
  current_stage: 'approve',
  stages: [
    stage('extract', 'Extract', done),
    stage('draft', 'Draft', { ...done, context: null }),
    stage('approve', 'Approve', {
      kind: 'approve',
      status: 'waiting',
      attempt: 1,
      question: {
        prompt: 'Shall the e-mail be written from these points?',
        artifact: 'h-points',
        cause: 'workflow',
        action: null,
        before: null,
      },
    }),
    stage('mail', 'E-mail'),
  ],
};

const turn = (turn_id: string, change: Partial<TurnView>): TurnView => ({
  turn_id,
  role: 'USER',
  mode: 'CHAT',
  content: '',
  thinking: null,
  status: 'complete',
  error: null,
  note_id: null,
  at: at(30),
  stats: null,
  ...change,
});

const talk: TurnView[] = [
  turn('t-1', { content: 'Where are we, and what is still open?' }),
  turn('t-2', {
    role: 'ROUTER',
    content: texts.reply,
    stats: {
      prompt_tokens: 340,
      reused_tokens: 312,
      output_tokens: 58,
      prompt_ms: 180,
      reply_ms: 1720,
      device: 'CPU',
    },
  }),
  turn('t-3', {
    mode: 'STEERING',
    content: 'Keep it under 120 words and lead with the new date.',
    note_id: 'n-1',
  }),
  turn('t-4', {
    role: 'ROUTER',
    content: 'Draft begins again with your note: under 120 words, the new date first.',
    stats: {
      prompt_tokens: 412,
      reused_tokens: 338,
      output_tokens: 19,
      prompt_ms: 240,
      reply_ms: 610,
      device: 'CPU',
    },
  }),
];

const chat: TurnView[] = [
  turn('c-5', { content: 'How many seconds does a week have?' }),
  turn('c-6', {
    role: 'ROUTER',
    thinking: { text: texts.thinking, tokens: 64 },
    content: 'A week has **604,800** seconds.',
    stats: {
      prompt_tokens: 61,
      reused_tokens: 0,
      output_tokens: 75,
      prompt_ms: 310,
      reply_ms: 1640,
      device: 'CPU',
    },
  }),
  turn('c-1', { content: 'What is a token? Show me a table and some code.' }),
  turn('c-2', {
    role: 'ROUTER',
    status: 'stopped',
    content:
      '## Tokens\n\nA *token* is a piece of text that a model reads at once. See [the notes](https://example.org).\n\n| text | tokens |\n| --- | ---: |\n| `hello` | 1 |\n| `Donaudampfschiff` | 7 |\n\n```python\nids = tokenizer.encode("hello")\nprint(len(ids))\n```\n\n<script>alert(1)</script>',
    stats: {
      prompt_tokens: 88,
      reused_tokens: 0,
      output_tokens: 96,
      prompt_ms: 420,
      reply_ms: 2100,
      device: 'CPU',
    },
  }),
  turn('c-3', { content: 'And why are there 49,152 of them?' }),
  turn('c-4', {
    role: 'ROUTER',
    status: 'failed',
    error: {
      code: 'inference',
      message: 'The model stopped in the middle of the answer: out of memory.',
      kept: 'Your message is kept; nothing was added to the run.',
      hint: 'Close other programs, then use Retry.',
    },
  }),
];

export function sessionView(summary: SessionSummary): SessionView {
  const runs: Record<string, RunView> = { 's-launch': run, 's-invoices': waiting };
  const turns: Record<string, TurnView[]> = { 's-launch': talk, 's-chat': chat };
  return {
    summary,
    run: runs[summary.session_id] ?? null,
    turns: turns[summary.session_id] ?? [],
    context: contextView('Router'),
  };
}
