// The TensorBoard beside a job: opened where there is one, else started, with the user's own rights.
import { useEffect, useState } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { errorText, json, query } from '../lib/api.ts';
import type { TensorboardData, WorkloadRow } from '../lib/types.ts';
import { Button, Notice, Skeleton } from './basic.tsx';
import { Dialog, open } from './dialog.tsx';

const AGAIN_MS = 1500;

const pathOf = (row: WorkloadRow) => `/ui/api/tensorboard${query({ namespace: row.namespace, name: row.name, kind: row.kind })}`;

// Nodes without addresses of their own are this machine.
export function addressOf(data: TensorboardData): string {
  if (data.url) return data.url;
  return data.port ? `http://${location.hostname}:${data.port}` : '';
}

function OpenLink({ data, primary }: { data: TensorboardData; primary?: boolean }) {
  return <a class={`button${primary ? ' primary' : ''}`} href={addressOf(data)} target="_blank" rel="noopener noreferrer">{primary ? 'Open TensorBoard' : 'TensorBoard'}</a>;
}

function StartDialog({ row, done }: { row: WorkloadRow; done: () => void }) {
  const [data, setData] = useState<TensorboardData>();
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const ask = async () => {
      try {
        const answer = await json<TensorboardData>('POST', pathOf(row));
        if (gone) return;
        setData(answer);
        if (answer.state === 'Starting') timer = window.setTimeout(() => void ask(), AGAIN_MS);
      } catch (error) {
        if (!gone) setWrong(errorText(error));
      }
    };
    void ask();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, []);
  const failed = wrong || (data?.state === 'Failed' ? data.message ?? 'It does not start.' : '');
  const ready = data?.state === 'Ready' && addressOf(data);
  return (
    <Dialog small title={`TensorBoard of ${row.name}`} onClose={done} onSubmit={done} foot={<><Button onClick={done}>Close</Button>{data && ready && <OpenLink data={data} primary />}</>}>
      <div class="stack" aria-live="polite" style={{ gap: '12px' }}>
        {failed && <Notice tone="bad">{failed}</Notice>}
        {!failed && !ready && <><p>TensorBoard is starting. It runs in a pod of your own beside the workload.</p><Skeleton lines={2} /></>}
        {!failed && data && ready && <>
          <p>TensorBoard answers at <code>{addressOf(data)}</code>.</p>
          <p class="muted small">TensorBoard knows no passwords: the curves are open to everybody on that network. If the address cannot be reached from here, run <code>swell port-forward -n {row.namespace} svc/{row.name}-tensorboard 6006</code>.</p>
        </>}
        <p class="muted small">It ends when the workload is deleted.</p>
      </div>
    </Dialog>
  );
}

export function TensorboardButton({ row }: { row: WorkloadRow }) {
  const [data, setData] = useState<TensorboardData>();
  const create = may('create', 'apps', 'deployments', row.namespace);
  const look = () => { json<TensorboardData>('GET', pathOf(row)).then(setData, () => setData(undefined)); };
  useEffect(look, [row.uid]);
  if (data?.state === 'Ready' && addressOf(data)) return <OpenLink data={data} />;
  if (!create) return null;
  return <Button onClick={() => open((done) => <StartDialog row={row} done={() => { done(); look(); }} />)}>TensorBoard</Button>;
}
