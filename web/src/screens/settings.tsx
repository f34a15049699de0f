// Colours, the session, and what the server says of itself.
import { useEffect, useState } from 'preact/hooks';
import { errorText, kube, logout, send, session } from '../lib/api.ts';
import { dateTime } from '../lib/format.ts';
import { setTheme, theme, type Theme } from '../lib/theme.ts';
import { Button, Card, Facts, Head, Segments, Status } from '../parts/basic.tsx';

interface Version { gitVersion?: string; platform?: string; goVersion?: string }
interface Leases { items: { metadata: { name: string; namespace: string }; spec?: { holderIdentity?: string; renewTime?: string } }[] }

export function Settings() {
  const [version, setVersion] = useState<Version>();
  const [health, setHealth] = useState<{ ok: boolean; text: string }>();
  const [leases, setLeases] = useState<Leases['items']>([]);
  useEffect(() => {
    kube.get<Version>('/version').then(setVersion, () => setVersion({}));
    send('GET', kube.path('/readyz')).then(() => setHealth({ ok: true, text: 'The API server is ready.' }), (error: unknown) => setHealth({ ok: false, text: errorText(error) }));
    kube.get<Leases>('/apis/coordination.k8s.io/v1/leases').then((list) => setLeases(list.items.filter((one) => one.metadata.namespace !== 'kube-node-lease').slice(0, 20)), () => setLeases([]));
  }, []);
  return (
    <>
      <Head title="Settings" />
      <div class="columns">
        <Card title="Colours"><Segments<Theme> label="Colours" value={theme.value} options={[['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']]} onChange={setTheme} /></Card>
        <Card title="Session" right={<Button onClick={() => void logout()}>Log out</Button>}>
          <Facts facts={[['User', session.value?.user], ['Groups', session.value?.groups.join(', ') || '–'], ['Ends', dateTime(session.value?.expires)]]} />
        </Card>
        <Card title="Server"><Facts facts={[
          ['Version', version?.gitVersion ?? '–'], ['Platform', version?.platform ?? '–'], ['Health', health ? <Status word={health.ok ? 'Ready' : 'Unhealthy'} reason={health.text} /> : '–'],
        ]} /></Card>
        <Card title="Leaders">
          {leases.length === 0 ? <p class="muted">No leader is elected, or you have no right to see it.</p>
            : <table class="list-table"><tbody>{leases.map((one) => <tr key={`${one.metadata.namespace}/${one.metadata.name}`}><td>{one.metadata.name}</td><td>{one.spec?.holderIdentity ?? '–'}</td></tr>)}</tbody></table>}
        </Card>
        <Card title="The same on the command line">
          <table class="list-table"><tbody>
            {[['swell list', 'workloads and why they wait'], ['swell why JOB', 'what would start a workload'], ['swell project list', 'projects and quotas'], ['swell top', 'GPUs, CPUs and memory in use'], ['swell events', 'what happened'], ['swell ui', 'a new address of these pages']].map(([command, text]) => <tr key={command}><td><code>{command}</code></td><td>{text}</td></tr>)}
          </tbody></table>
        </Card>
      </div>
    </>
  );
}
