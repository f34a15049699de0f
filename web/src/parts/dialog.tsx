// Dialogs and forms. An error of the API server is shown at the field that it names.
import { render, type ComponentChildren, type VNode } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError, errorText, session, type Cause } from '../lib/api.ts';
import { plainNumber } from '../lib/format.ts';
import { Button, Notice } from './basic.tsx';

export function Dialog({
  title,
  onClose,
  onSubmit,
  children,
  foot,
  small,
  busy,
}: {
  title: string;
  onClose: () => void;
  onSubmit: () => void;
  children: ComponentChildren;
  foot: ComponentChildren;
  small?: boolean;
  busy?: boolean;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const element = box.current;
    return () => {
      element?.close(); // until then the page behind it takes no focus
      before?.focus?.();
    };
  }, []);
  // The login is in front of it while nobody is logged in. What was typed is kept until then.
  const shown = Boolean(session.value);
  useEffect(() => {
    if (shown) box.current?.showModal();
    else box.current?.close();
  }, [shown]);
  return (
    <dialog
      ref={box}
      class={small ? 'small-dialog' : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!busy) onClose();
      }}
      onClick={(event) => event.stopPropagation()}
    >
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) onSubmit();
        }}
      >
        <header>
          <h2 id={id}>{title}</h2>
          <div class="right">
            <Button plain icon="close" label="Close" onClick={onClose} />
          </div>
        </header>
        <div class="body">{children}</div>
        <footer>{foot}</footer>
      </form>
    </dialog>
  );
}

// What is wrong with the fields of a form, by field: found here, or said by the API server.
export class Wrongs {
  private readonly byField = new Map<string, string>();
  add(field: string, message: string): void {
    if (!this.byField.has(field)) this.byField.set(field, message);
  }
  at(field: string): string | undefined {
    return this.byField.get(field);
  }
  get any(): boolean {
    return this.byField.size > 0;
  }
  // What belongs to no field of the form.
  rest(fields: string[]): [string, string][] {
    return [...this.byField].filter(([field]) => !fields.includes(field));
  }
}

// The form's field for a path of the API: "spec.nodePools[0].resources.gpu.quota" → its longest known beginning.
export function fieldFor(cause: string, fields: string[]): string {
  const path = cause.replace(/^\.?/, '').replaceAll(/\["?([^"\]]+)"?\]/g, '.$1');
  const fits = fields.filter((field) => path === field || path.startsWith(`${field}.`) || field.startsWith(`${path}.`));
  return fits.sort((a, b) => b.length - a.length)[0] ?? '';
}

export function wrongsOf(error: unknown, fields: string[]): Wrongs {
  const wrongs = new Wrongs();
  const causes: Cause[] = error instanceof ApiError ? error.causes : [];
  for (const cause of causes) {
    const field = fieldFor(cause.field, fields);
    wrongs.add(field, field ? cause.message : `${cause.field ? `${cause.field}: ` : ''}${cause.message}`);
  }
  if (!wrongs.any) {
    const text = errorText(error);
    // A message that names one field is shown there, though it came without causes.
    const named = fields.filter(
      (field) => field && new RegExp(`\\b${field.replaceAll(/[.[\]]/g, '\\$&')}\\b`).test(text),
    );
    const exists = error instanceof ApiError && error.reason === 'AlreadyExists' && fields.includes('metadata.name');
    wrongs.add(exists ? 'metadata.name' : (named.sort((a, b) => b.length - a.length)[0] ?? ''), text);
  }
  return wrongs;
}

// What is wrong with a form but belongs to none of its fields.
export function OtherWrongs({ wrongs, fields }: { wrongs: Wrongs; fields: string[] }) {
  return (
    <>
      {wrongs.rest(fields).map(([, text]) => (
        <Notice key={text} tone="bad">
          {text}
        </Notice>
      ))}
    </>
  );
}

// The buttons of a form.
export function FormFoot({
  done,
  disabled,
  children,
}: {
  done: () => void;
  disabled: boolean;
  children: ComponentChildren;
}) {
  return (
    <>
      <Button onClick={done}>Cancel</Button>
      <Button type="submit" primary disabled={disabled}>
        {children}
      </Button>
    </>
  );
}

export function Field({
  label,
  name,
  help,
  wrongs,
  children,
}: {
  label: string;
  name: string;
  help?: ComponentChildren;
  wrongs?: Wrongs;
  children: (props: {
    id: string;
    'aria-invalid': boolean;
    'aria-describedby': string | undefined;
    'data-field': string;
  }) => ComponentChildren;
}) {
  const id = useId();
  const wrong = wrongs?.at(name);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        'aria-invalid': wrong !== undefined,
        'aria-describedby': wrong || help ? `${id}-more` : undefined,
        'data-field': name,
      })}
      {wrong ? (
        <span class="wrong" id={`${id}-more`} role="alert">
          {wrong}
        </span>
      ) : (
        help && (
          <span class="help" id={`${id}-more`}>
            {help}
          </span>
        )
      )}
    </div>
  );
}

export function TextField({
  label,
  name,
  value,
  onInput,
  help,
  wrongs,
  placeholder,
  number,
  area,
  list,
  disabled,
}: {
  label: string;
  name: string;
  value: string;
  onInput: (value: string) => void;
  help?: ComponentChildren;
  wrongs?: Wrongs;
  placeholder?: string;
  number?: boolean;
  area?: number;
  list?: string[];
  disabled?: boolean;
}) {
  const listId = useId();
  return (
    <Field label={label} name={name} help={help} wrongs={wrongs}>
      {(props) => (
        <>
          {area ? (
            <textarea
              {...props}
              rows={area}
              value={value}
              placeholder={placeholder}
              spellcheck={false}
              onInput={(event) => onInput(event.currentTarget.value)}
            />
          ) : (
            <input
              {...props}
              value={value}
              placeholder={placeholder}
              inputMode={number ? 'decimal' : undefined}
              disabled={disabled}
              autoComplete="off"
              spellcheck={false}
              list={list ? listId : undefined}
              onInput={(event) => onInput(event.currentTarget.value)}
            />
          )}
          {list && (
            <datalist id={listId}>
              {list.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function SelectField({
  label,
  name,
  value,
  onChange,
  options,
  help,
  wrongs,
}: {
  label: string;
  name: string;
  value: string;
  onChange: (value: string) => void;
  options: [string, string][];
  help?: ComponentChildren;
  wrongs?: Wrongs;
}) {
  return (
    <Field label={label} name={name} help={help} wrongs={wrongs}>
      {(props) => (
        <select {...props} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

// What is wrong with a form. The first field that is wrong has the focus as soon as that is shown, not
// a frame later: what is typed meanwhile would go to another field.
export function useWrongs(): [Wrongs, (wrongs: Wrongs) => void] {
  const [wrongs, setWrongs] = useState(new Wrongs());
  useLayoutEffect(() => {
    if (wrongs.any) document.querySelector<HTMLElement>('dialog [aria-invalid="true"]')?.focus();
  }, [wrongs]);
  return [wrongs, setWrongs];
}

// A number of a form; undefined where the text is not a number.
export function readNumber(text: string): number | undefined {
  const trimmed = plainNumber(text);
  if (!/^-?\d+(\.\d+)?$/.test(trimmed)) return undefined;
  return Number(trimmed);
}

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
export function checkName(name: string): string | undefined {
  if (!name) return 'Enter a name.';
  if (name.length > 63) return `The name has ${name.length} characters; at most 63 are allowed.`;
  if (!NAME.test(name)) return 'Use lower-case letters, digits and hyphens; begin and end with a letter or a digit.';
  return undefined;
}

function Confirm({
  title,
  text,
  action,
  danger,
  run,
  done,
}: {
  title: string;
  text: ComponentChildren;
  action: string;
  danger?: boolean;
  run: () => Promise<void>;
  done: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState('');
  const submit = async () => {
    setBusy(true);
    try {
      await run();
      done();
    } catch (error) {
      setWrong(errorText(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      small
      title={title}
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={
        <>
          <Button onClick={done} disabled={busy}>
            Cancel
          </Button>
          <Button type="submit" primary danger={danger} disabled={busy}>
            {busy ? 'Working …' : action}
          </Button>
        </>
      }
    >
      <div>{text}</div>
      {wrong && (
        <div class="notice bad" role="alert">
          {wrong}
        </div>
      )}
    </Dialog>
  );
}

// Opens a dialog beside the page, and takes it away when it is done, or when another user has logged in.
export function open(make: (done: () => void) => ComponentChildren): void {
  const holder = document.createElement('div');
  document.body.append(holder);
  const user = session.peek()?.user;
  const done = () => {
    forget();
    render(null, holder);
    holder.remove();
  };
  const forget = session.subscribe((now) => {
    if (now && now.user !== user) done();
  });
  render(make(done) as VNode, holder);
}
export function confirm(question: {
  title: string;
  text: ComponentChildren;
  action: string;
  danger?: boolean;
  run: () => Promise<void>;
}): void {
  open((done) => <Confirm {...question} done={done} />);
}
