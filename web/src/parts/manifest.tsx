// The manifest of an object as YAML, to read and to change.
import { useEffect, useState } from 'preact/hooks';
import { errorText, kube } from '../lib/api.ts';
import type { KubeObject } from '../lib/types.ts';
import { toYaml } from '../lib/yaml.ts';
import { Button, Card, Notice, Skeleton, copy, toast } from './basic.tsx';
import { mayAll, pathOf, type JobRef } from './job_actions.tsx';

function Text({ text, edited, setEdited }: { text: string; edited?: string; setEdited: (text: string) => void }) {
  if (edited === undefined) {
    return (
      <pre class="text" tabIndex={0} style={{ maxHeight: '70dvh' }}>
        {text}
      </pre>
    );
  }
  return (
    <textarea
      aria-label="Manifest"
      rows={30}
      spellcheck={false}
      value={edited}
      onInput={(event) => setEdited(event.currentTarget.value)}
    />
  );
}

export function Manifest({ of, what }: { of: JobRef & { uid: string }; what: string }) {
  const [text, setText] = useState('');
  const [edited, setEdited] = useState<string>();
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const change = mayAll('update', [of]);
  const read = () => {
    kube.get<KubeObject>(pathOf(of)).then(
      (object) => {
        setText(toYaml({ ...object, metadata: { ...object.metadata, managedFields: undefined } }));
        setWrong('');
      },
      (error: unknown) => setWrong(errorText(error)),
    );
  };
  useEffect(read, [of.uid]);
  const save = async () => {
    setBusy(true);
    try {
      await kube.replace(`${pathOf(of)}?fieldValidation=Strict`, edited, 'application/yaml');
      setEdited(undefined);
      toast(`${what} ${of.name} is changed.`);
      read();
    } catch (error) {
      setWrong(errorText(error));
    }
    setBusy(false);
  };
  const cancel = () => {
    setEdited(undefined);
    setWrong('');
  };
  const toClipboard = () =>
    copy(text, 'The manifest was copied.', 'The browser did not let the page copy. Select the text instead.');
  const toRead = (
    <>
      <Button onClick={read}>Read again</Button>
      <Button onClick={toClipboard} disabled={!text}>
        Copy
      </Button>
      {change && (
        <Button icon="edit" onClick={() => setEdited(text)} disabled={!text}>
          Edit
        </Button>
      )}
    </>
  );
  const toEdit = (
    <>
      <Button onClick={cancel}>Cancel</Button>
      <Button primary disabled={busy} onClick={() => void save()}>
        Save
      </Button>
    </>
  );
  return (
    <Card title="Manifest" right={edited === undefined ? toRead : toEdit}>
      {wrong && <Notice tone="bad">{wrong}</Notice>}
      {text ? <Text text={text} edited={edited} setEdited={setEdited} /> : !wrong && <Skeleton lines={8} />}
    </Card>
  );
}
