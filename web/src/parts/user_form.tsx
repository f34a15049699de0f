// The dialogs that make a user, and give a user new credentials. The answer is a kubeconfig, shown once.
import { useState } from 'preact/hooks';
import { json } from '../lib/api.ts';
import { download } from '../lib/rows.ts';
import { useView } from '../lib/live.ts';
import type { ProjectRow, Rows } from '../lib/types.ts';
import { Button, Notice, copy, toast } from './basic.tsx';
import {
  Dialog,
  FormFoot,
  OtherWrongs,
  SelectField,
  TextField,
  Wrongs,
  readNumber,
  useWrongs,
  wrongsOf,
} from './dialog.tsx';

interface Made {
  name: string;
  kubeconfig: string;
}
interface Form {
  name: string;
  role: string;
  projects: string[];
  groups: string;
  runAs: string;
  days: string;
}

const FIELDS = ['name', 'role', 'projects', 'groups', 'runAs', 'days'];
const ROLES: [string, string][] = [
  ['researcher', 'Researcher: jobs, pods, volumes and Secrets of a project'],
  ['viewer', 'Viewer: reads all of a project but Secrets'],
  ['project-admin', 'Project admin: everything in a project'],
  ['admin', 'Admin: everything in the cluster'],
];

function daysOf(text: string, wrongs: Wrongs): number | undefined {
  const days = readNumber(text);
  if (days === undefined || days < 1 || !Number.isInteger(days))
    wrongs.add('days', 'Enter a whole number of days, 1 or more.');
  return days;
}

function Credentials({ made, done }: { made: Made; done: () => void }) {
  const file = `${made.name}.kubeconfig`;
  const toClipboard = () =>
    copy(
      made.kubeconfig,
      'The kubeconfig was copied.',
      'The browser did not let the page copy. Save the file instead.',
    );
  return (
    <Dialog
      title={`Credentials of ${made.name}`}
      onClose={done}
      onSubmit={done}
      foot={
        <>
          <Button onClick={toClipboard}>Copy</Button>
          <Button onClick={() => download(file, made.kubeconfig, 'application/yaml')}>Save {file}</Button>
          <Button type="submit" primary>
            Close
          </Button>
        </>
      }
    >
      <Notice>
        This kubeconfig is shown only now. Everybody who has it can act as {made.name}: send it to nobody else.
      </Notice>
      <p>
        Save it, then run <code>export KUBECONFIG={file}</code>. Pasted whole into the login of these pages, it logs in
        there, too.
      </p>
      <pre class="text" tabIndex={0} aria-label="Kubeconfig">
        {made.kubeconfig}
      </pre>
    </Dialog>
  );
}

function Projects({
  chosen,
  change,
  wrongs,
}: {
  chosen: string[];
  change: (projects: string[]) => void;
  wrongs: Wrongs;
}) {
  const names = useView<Rows<ProjectRow>>('projects').data?.rows.map((row) => row.name) ?? [];
  const wrong = wrongs.at('projects');
  return (
    <fieldset aria-describedby={wrong ? 'projects-wrong' : undefined}>
      <legend>Projects</legend>
      {names.length === 0 && <p class="muted">There are no projects yet. Create one first.</p>}
      <div class="checks" data-field="projects">
        {names.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              aria-invalid={wrong !== undefined}
              onChange={(event) =>
                change(event.currentTarget.checked ? [...chosen, name] : chosen.filter((one) => one !== name))
              }
            />{' '}
            {name}
          </label>
        ))}
      </div>
      {wrong && (
        <span class="wrong" id="projects-wrong" role="alert">
          {wrong}
        </span>
      )}
    </fieldset>
  );
}

const NEW: Form = { name: '', role: 'researcher', projects: [], groups: '', runAs: '', days: '365' };

// An administrator has all projects.
const isLimited = (form: Form) => form.role !== 'admin';

function bodyOf(form: Form, days: number | undefined): Record<string, unknown> {
  return {
    name: form.name.trim(),
    role: form.role,
    projects: isLimited(form) ? form.projects : [],
    groups: form.groups
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean),
    runAs: form.runAs.trim(),
    days,
  };
}

function Fields({ form, set, wrongs }: { form: Form; set: (change: Partial<Form>) => void; wrongs: Wrongs }) {
  return (
    <>
      <TextField
        label="Name"
        name="name"
        value={form.name}
        onInput={(name) => set({ name })}
        wrongs={wrongs}
        placeholder="alice"
      />
      <SelectField
        label="Role"
        name="role"
        value={form.role}
        onChange={(role) => set({ role })}
        options={ROLES}
        wrongs={wrongs}
      />
      {isLimited(form) && <Projects chosen={form.projects} change={(projects) => set({ projects })} wrongs={wrongs} />}
      <div class="fields">
        <TextField
          label="Groups"
          name="groups"
          value={form.groups}
          onInput={(groups) => set({ groups })}
          wrongs={wrongs}
          placeholder="none"
          help="For role bindings of your own; separated by commas."
        />
        <TextField
          label="Pods run as"
          name="runAs"
          value={form.runAs}
          onInput={(runAs) => set({ runAs })}
          wrongs={wrongs}
          placeholder="as they say"
          help="User and groups of the node, for example 1500:100,44."
        />
        <TextField
          number
          label="Valid for days"
          name="days"
          value={form.days}
          onInput={(days) => set({ days })}
          wrongs={wrongs}
        />
      </div>
    </>
  );
}

export function UserForm({ done }: { done: () => void }) {
  const [form, setForm] = useState<Form>(NEW);
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<Made>();
  const set = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const submit = async () => {
    const found = new Wrongs();
    if (!form.name.trim()) found.add('name', 'Enter a name, for example alice or alice@example.com.');
    if (isLimited(form) && form.projects.length === 0) found.add('projects', 'Choose at least one project.');
    const days = daysOf(form.days, found);
    setWrongs(found);
    if (found.any) return;
    setBusy(true);
    try {
      setMade(await json<Made>('POST', '/ui/api/users', { body: bodyOf(form, days) }));
      toast(`User ${form.name.trim()} was created.`);
    } catch (error) {
      setWrongs(wrongsOf(error, FIELDS));
      setBusy(false);
    }
  };
  if (made) return <Credentials made={made} done={done} />;
  return (
    <Dialog
      title="New user"
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={
        <FormFoot done={done} disabled={busy}>
          Create user
        </FormFoot>
      }
    >
      <OtherWrongs wrongs={wrongs} fields={FIELDS} />
      <Fields form={form} set={set} wrongs={wrongs} />
    </Dialog>
  );
}

export function KubeconfigForm({ name, done }: { name: string; done: () => void }) {
  const [days, setDays] = useState('365');
  const [wrongs, setWrongs] = useWrongs();
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<Made>();
  const submit = async () => {
    const found = new Wrongs();
    const valid = daysOf(days, found);
    setWrongs(found);
    if (found.any) return;
    setBusy(true);
    try {
      setMade(await json<Made>('POST', '/ui/api/users/kubeconfig', { body: { name, days: valid } }));
    } catch (error) {
      setWrongs(wrongsOf(error, ['days']));
      setBusy(false);
    }
  };
  if (made) return <Credentials made={made} done={done} />;
  return (
    <Dialog
      small
      title={`New credentials for ${name}`}
      onClose={done}
      onSubmit={() => void submit()}
      busy={busy}
      foot={
        <FormFoot done={done} disabled={busy}>
          Make a kubeconfig
        </FormFoot>
      }
    >
      <OtherWrongs wrongs={wrongs} fields={['days']} />
      <p>Credentials that {name} has already stay valid.</p>
      <TextField number label="Valid for days" name="days" value={days} onInput={setDays} wrongs={wrongs} />
    </Dialog>
  );
}
