// Where the pages begin: session, theme, connection, and which screen an address shows.
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { render, type ComponentType } from 'preact';
import { session, startSession, unreached } from './lib/api.ts';
import { startClock } from './lib/clock.ts';
import { start, stop } from './lib/live.ts';
import { place, screenKey, startRouter } from './lib/router.ts';
import { startTheme } from './lib/theme.ts';
import { Empty, Head } from './parts/basic.tsx';
import { Login, Reaching } from './parts/login.tsx';
import { Shell } from './parts/shell.tsx';
import { Analytics } from './screens/analytics.tsx';
import { CronPage, Crons } from './screens/crons.tsx';
import { Events } from './screens/events.tsx';
import { JobPage } from './screens/job.tsx';
import { NodePage, Nodes } from './screens/nodes.tsx';
import { Overview } from './screens/overview.tsx';
import { PoolPage, Pools } from './screens/pools.tsx';
import { ProjectPage, Projects } from './screens/projects.tsx';
import { Settings } from './screens/settings.tsx';
import { Users } from './screens/users.tsx';
import { WhatIf } from './screens/whatif.tsx';
import { Workloads } from './screens/workloads.tsx';

const SCREENS: Record<string, ComponentType> = {
  '/': Overview,
  '/workloads': Workloads,
  '/job': JobPage,
  '/crons': Crons,
  '/cron': CronPage,
  '/projects': Projects,
  '/project': ProjectPage,
  '/nodepools': Pools,
  '/nodepool': PoolPage,
  '/nodes': Nodes,
  '/node': NodePage,
  '/analytics': Analytics,
  '/whatif': WhatIf,
  '/events': Events,
  '/users': Users,
  '/settings': Settings,
};

function NotFound() {
  return (
    <>
      <Head title="There is no such page" />
      <Empty title="The address may be old">
        <a href="/">Go to the overview</a>
      </Empty>
    </>
  );
}

function App() {
  if (session.value === undefined) return <Reaching />;
  if (session.value === null) return <Login />;
  const Screen = SCREENS[place.value.path] ?? NotFound;
  return (
    <Shell>
      <Screen key={screenKey(place.value)} />
    </Shell>
  );
}

const root = document.getElementById('app');
let shown = false;

// The frame of index.html stays on the page until there is something to show in it.
function show(): void {
  if (shown || !root) return;
  shown = true;
  root.replaceChildren();
  render(<App />, root);
}

startTheme();
startRouter();
startClock();
session.subscribe((now) => {
  if (now === undefined) return;
  // Before the first screen is made: the connection is there when that has been painted.
  if (now) start();
  else stop();
  show();
});
unreached.subscribe((why) => why && show());
void startSession();
