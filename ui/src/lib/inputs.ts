/** What a person gives a workflow, while it is being given. */
import type { InputValue, WorkflowView } from '../wire';

export interface InputDraft {
  readonly name: string;
  /** `text`, `file`, `folder`, `choice` or `number`, as the workflow declares it. */
  readonly kind: string;
  readonly description: string;
  readonly required: boolean;
  readonly sample: string | null;
  readonly choices: readonly string[];
  readonly min: number | null;
  readonly max: number | null;
  /** Whether the text or the path is what counts. */
  readonly form: 'text' | 'path';
  readonly text: string;
  readonly path: string;
}

/** The inputs as they stand before the person writes: samples and defaults are filled in. */
export function emptyInputs(workflow: WorkflowView): InputDraft[] {
  return workflow.inputs.map((input) => ({
    name: input.name,
    kind: input.kind,
    description: input.description,
    required: input.required,
    sample: input.sample,
    choices: input.choices,
    min: input.min,
    max: input.max,
    form: isValue(input.kind) || input.sample !== null ? 'text' : 'path',
    text: input.sample ?? input.default ?? '',
    path: '',
  }));
}

/** The name of the first required input that was not given. */
export function missingInput(inputs: readonly InputDraft[]): string | null {
  return inputs.find((input) => input.required && given(input).trim() === '')?.name ?? null;
}

/** The inputs that were given, as the engine takes them. */
export function inputValues(inputs: readonly InputDraft[]): InputValue[] {
  return inputs
    .filter((input) => given(input).trim() !== '')
    .map((input) =>
      input.form === 'text'
        ? { kind: 'text', name: input.name, text: input.text }
        : { kind: 'path', name: input.name, path: input.path.trim() },
    );
}

/** Whether an input of this kind is a text at first, and no path. */
function isValue(kind: string): boolean {
  return kind === 'text' || kind === 'choice' || kind === 'number';
}

function given(input: InputDraft): string {
  return input.form === 'text' ? input.text : input.path;
}
