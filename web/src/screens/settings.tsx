// Colours, the session, and what the server says of itself.
import { useEffect, useState } from 'preact/hooks';
import { errorText, kube, logout, send, session } from '../lib/api.ts';
import { dateTime, zoneHere } from '../lib/format.ts';
import { setTheme, theme, type Theme } from '../lib/theme.ts';
import { Button, Card, Facts, Head, Segments, Status } from '../parts/basic.tsx';
import { ListTable } from '../parts/list_table.tsx';

interface Version {
  gitVersion?: string;
  platform?: string;
  goVersion?: string;
}
interface Leases {
  items: { metadata: { name: string; namespace: string }; spec?: { holderIdentity?: string; renewTime?: string } }[];
}

const LEASES_MAX = 20;
const COMMANDS: [string, string][] = [
  ['swell list', 'workloads and why they wait'],
  ['swell why JOB', 'what would start a workload'],
  ['swell project list', 'projects and quotas'],
  ['swell top', 'jobs, nodes and projects, live on the terminal'],
  ['swell events', 'what happened'],
  ['swell ui', 'a new address of these pages'],
];

function Colours() {
  return (
    <Card title="Colours">
      <Segments<Theme>
        label="Colours"
        value={theme.value}
        options={[
          ['system', 'As the system'],
          ['light', 'Light'],
          ['dark', 'Dark'],
        ]}
        onChange={setTheme}
      />
    </Card>
  );
}

function SessionCard() {
  return (
    <Card title="Session" right={<Button onClick={() => void logout()}>Log out</Button>}>
      <Facts
        facts={[
          ['User', session.value?.user],
          ['Groups', session.value?.groups.join(', ') || '–'],
          ['Time zone', zoneHere()],
          ['Ends', dateTime(session.value?.expires)],
        ]}
      />
    </Card>
  );
}

function ServerCard() {
  const [version, setVersion] = useState<Version>();
  const [health, setHealth] = useState<{ ok: boolean; text: string }>();
  useEffect(() => {
    kube.get<Version>('/version').then(setVersion, () => setVersion({}));
    send('GET', kube.path('/readyz')).then(
      () => setHealth({ ok: true, text: 'The API server is ready.' }),
      (error: unknown) => setHealth({ ok: false, text: errorText(error) }),
    );
  }, []);
  return (
    <Card title="Server">
      <Facts
        facts={[
          ['Swell', session.value?.version ?? '–'],
          ['Kubernetes API', version?.gitVersion ?? '–'],
          ['Platform', version?.platform ?? '–'],
          ['Health', health ? <Status word={health.ok ? 'Ready' : 'Unhealthy'} reason={health.text} /> : '–'],
        ]}
      />
    </Card>
  );
}

function Leaders() {
  const [leases, setLeases] = useState<Leases['items']>();
  const [error, setError] = useState('');
  useEffect(() => {
    kube.get<Leases>('/apis/coordination.k8s.io/v1/leases').then(
      (list) => {
        const leaders = list.items.filter((one) => one.metadata.namespace !== 'kube-node-lease');
        setLeases(leaders.slice(0, LEASES_MAX));
      },
      (reason: unknown) => setError(errorText(reason)),
    );
  }, []);
  return (
    <Card title="Leaders">
      {error && <p class="muted">The leaders could not be read: {error}</p>}
      {leases?.length === 0 && (
        <p class="muted">No leader is elected: one process is the whole control plane of this cluster.</p>
      )}
      {leases && leases.length > 0 && (
        <ListTable>
          {leases.map((one) => (
            <tr key={`${one.metadata.namespace}/${one.metadata.name}`}>
              <td>{one.metadata.name}</td>
              <td>{one.spec?.holderIdentity ?? '–'}</td>
            </tr>
          ))}
        </ListTable>
      )}
    </Card>
  );
}

export function Settings() {
  return (
    <>
      <Head title="Settings" />
      <div class="columns">
        <Colours />
        <SessionCard />
        <ServerCard />
        <Leaders />
        <Card title="The same on the command line">
          <ListTable>
            {COMMANDS.map(([command, text]) => (
              <tr key={command}>
                <td>
                  <code>{command}</code>
                </td>
                <td>{text}</td>
              </tr>
            ))}
          </ListTable>
        </Card>
      </div>
    </>
  );
}
