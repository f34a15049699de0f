// The TensorBoard beside a job: opened where there is one, else started, with the user's own rights.
import { useEffect, useState } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { errorText, json, query } from '../lib/api.ts';
import type { TensorboardData, WorkloadRow } from '../lib/types.ts';
import { Button, Notice, Skeleton, toast } from './basic.tsx';
import { Dialog, open } from './dialog.tsx';

const AGAIN_MS = 1500;

const queryOf = (row: WorkloadRow) => query({ namespace: row.namespace, name: row.name, kind: row.kind });
const pathOf = (row: WorkloadRow) => `/ui/api/tensorboard${queryOf(row)}`;

// Its address without the pages. A node without an address of its own is this machine.
export function addressOf(data: TensorboardData): string {
  if (data.url) return data.url;
  return data.port ? `http://${location.hostname}:${data.port}` : '';
}

// The window is opened first, while the browser still counts it as opened by the click.
async function openBoard(row: WorkloadRow): Promise<void> {
  const tab = window.open('about:blank', '_blank');
  if (!tab) return toast('The browser has blocked the window. Allow pop-ups of this page.', true);
  tab.opener = null;
  try {
    const { url } = await json<{ url: string }>('POST', `/ui/api/tensorboard/open${queryOf(row)}`);
    tab.location.replace(url);
  } catch (error) {
    tab.close();
    toast(errorText(error), true);
  }
}

function OpenLink({ row, data, primary }: { row: WorkloadRow; data: TensorboardData; primary?: boolean }) {
  const text = primary ? 'Open TensorBoard' : 'TensorBoard';
  if (data.opens)
    return (
      <Button primary={primary} onClick={() => void openBoard(row)}>
        {text}
      </Button>
    );
  return (
    <a
      class={`button${primary ? ' primary' : ''}`}
      href={addressOf(data)}
      target="_blank"
      rel="noopener noreferrer"
      title={data.closed ?? undefined}
    >
      {text}
    </a>
  );
}

const canOpen = (data: TensorboardData | undefined) =>
  data?.state === 'Ready' && Boolean(data.opens || addressOf(data));

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
  const failed = wrong || (data?.state === 'Failed' ? (data.message ?? 'It does not start.') : '');
  const ready = canOpen(data);
  const forward = `swell port-forward -n ${row.namespace} svc/${row.name}-tensorboard 6006`;
  return (
    <Dialog
      small
      title={`TensorBoard of ${row.name}`}
      onClose={done}
      onSubmit={done}
      foot={
        <>
          <Button onClick={done}>Close</Button>
          {data && ready && <OpenLink row={row} data={data} primary />}
        </>
      }
    >
      <div class="stack" aria-live="polite" style={{ gap: '12px' }}>
        {failed && <Notice tone="bad">{failed}</Notice>}
        {!failed && !ready && (
          <>
            <p>TensorBoard is starting. It runs in a pod of your own beside the workload.</p>
            <Skeleton lines={2} />
          </>
        )}
        {!failed &&
          data &&
          ready &&
          (data.opens ? (
            <p>TensorBoard is ready. The pages open it with your right to forward ports to pods of {row.namespace}.</p>
          ) : (
            <>
              <p>
                TensorBoard answers at <code>{addressOf(data)}</code>.
              </p>
              <p class="muted small">
                TensorBoard knows no passwords: the curves are open to everybody on that network. If the address cannot
                be reached from here, run <code>{forward}</code>.
              </p>
              {data.closed && <p class="muted small">The pages do not open it: {data.closed}.</p>}
            </>
          ))}
        <p class="muted small">It ends when the workload is deleted.</p>
      </div>
    </Dialog>
  );
}

export function TensorboardButton({ row }: { row: WorkloadRow }) {
  const [data, setData] = useState<TensorboardData>();
  const create = may('create', 'apps', 'deployments', row.namespace);
  const look = () => {
    json<TensorboardData>('GET', pathOf(row)).then(setData, () => setData(undefined));
  };
  useEffect(look, [row.uid]);
  if (data && canOpen(data)) return <OpenLink row={row} data={data} />;
  if (!create) return null;
  return (
    <Button
      onClick={() =>
        open((done) => (
          <StartDialog
            row={row}
            done={() => {
              done();
              look();
            }}
          />
        ))
      }
    >
      TensorBoard
    </Button>
  );
}
