// The frame of all pages: rail, search, state of the connection, theme, user, keys.
import type { ComponentChildren } from 'preact';
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { may } from '../lib/access.ts';
import { logout, session } from '../lib/api.ts';
import { link, paused, reached, setPaused, useView } from '../lib/live.ts';
import { go, hrefOf, place } from '../lib/router.ts';
import { learnProjects, setTheme, theme } from '../lib/theme.ts';
import type { CronRow, NodeRow, PoolRow, ProjectRow, Rows, WorkloadRow } from '../lib/types.ts';
import { Button, Menu, Toasts } from './basic.tsx';
import { Dialog, open } from './dialog.tsx';
import { Brand, Icon, type IconName } from './icons.tsx';
import { noteProjects } from './usage_charts.tsx';

interface Entry {
  text: string;
  href: string;
  icon: IconName;
  also?: string;
  key: string;
}
const GROUPS: { title?: string; entries: Entry[]; sub?: string }[] = [
  { entries: [{ text: 'Overview', href: '/', icon: 'home', key: 'o' }] },
  {
    title: 'Workload manager',
    entries: [
      { text: 'Workloads', href: '/workloads', icon: 'jobs', also: '/job', key: 'j' },
      { text: 'Crons', href: '/crons', icon: 'crons', also: '/cron', key: 'c' },
    ],
  },
  {
    title: 'Platform Admin',
    entries: [{ text: 'Projects', href: '/projects', icon: 'projects', also: '/project', key: 'p' }],
  },
  {
    sub: 'Cluster Management',
    entries: [
      { text: 'Node Pools', href: '/nodepools', icon: 'pools', also: '/nodepool', key: 'l' },
      { text: 'Nodes', href: '/nodes', icon: 'nodes', also: '/node', key: 'n' },
    ],
  },
  {
    sub: 'Insight',
    entries: [
      { text: 'Analytics', href: '/analytics', icon: 'analytics', key: 'a' },
      { text: 'What-if', href: '/whatif', icon: 'whatif', key: 'w' },
      { text: 'Events', href: '/events', icon: 'events', key: 'e' },
    ],
  },
  {
    sub: 'Access',
    entries: [
      { text: 'Users', href: '/users', icon: 'users', key: 'u' },
      { text: 'Settings', href: '/settings', icon: 'settings', key: 's' },
    ],
  },
];
const ENTRIES = GROUPS.flatMap((group) => group.entries);
const drawer = signal(false);

function Rail() {
  const path = place.value.path;
  const administers = may('*', '*', '*');
  return (
    <>
      {drawer.value && (
        <button
          type="button"
          class="shade"
          aria-label="Close the menu"
          onClick={() => {
            drawer.value = false;
          }}
        />
      )}
      <nav class={`rail${drawer.value ? ' open' : ''}`} aria-label="Pages">
        <a class="brand" href="/">
          <Brand />
          Swell
        </a>
        {GROUPS.map((group) => (
          <div key={group.title ?? group.sub ?? 'home'}>
            {group.title && <h2>{group.title}</h2>}
            {group.sub && <h3>{group.sub}</h3>}
            <ul>
              {group.entries
                .filter((entry) => entry.href !== '/users' || administers)
                .map((entry) => (
                  <li key={entry.href}>
                    <a
                      href={entry.href}
                      aria-current={path === entry.href || path === entry.also ? 'page' : undefined}
                      title={`g ${entry.key}`}
                      onClick={() => {
                        drawer.value = false;
                      }}
                    >
                      <Icon name={entry.icon} />
                      {entry.text}
                    </a>
                  </li>
                ))}
            </ul>
          </div>
        ))}
        <div class="foot">
          <kbd>?</kbd> shows the keys
        </div>
      </nav>
    </>
  );
}

interface Found {
  text: string;
  kind: string;
  href: string;
}
const FOUND_MAX = 12;

// Mounted while the search has a text, so that its views are read only then.
function Results({ text, chosen, onFound }: { text: string; chosen: number; onFound: (found: Found[]) => void }) {
  const workloads = useView<Rows<WorkloadRow>>('workloads');
  const jobs = workloads.data?.rows ?? [];
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows ?? [];
  const nodes = useView<Rows<NodeRow>>('nodes').data?.rows ?? [];
  const pools = useView<Rows<PoolRow>>('nodepools').data?.rows ?? [];
  const crons = useView<Rows<CronRow>>('crons').data?.rows ?? [];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (name: string) => words.every((word) => name.toLowerCase().includes(word));
  const found: Found[] = [
    ...ENTRIES.filter((entry) => fits(entry.text)).map((entry) => ({
      text: entry.text,
      kind: 'Page',
      href: entry.href,
    })),
    ...projects
      .filter((row) => fits(row.name))
      .map((row) => ({ text: row.name, kind: 'Project', href: hrefOf.project(row.name) })),
    ...pools
      .filter((row) => fits(row.name))
      .map((row) => ({ text: row.name, kind: 'Node pool', href: hrefOf.pool(row.name) })),
    ...crons
      .filter((row) => fits(`${row.namespace}/${row.name}`))
      .map((row) => ({ text: `${row.namespace}/${row.name}`, kind: row.kind, href: hrefOf.cron(row) })),
    ...jobs
      .filter((row) => fits(`${row.namespace}/${row.name}`))
      .slice(0, FOUND_MAX)
      .map((row) => ({ text: `${row.namespace}/${row.name}`, kind: row.kind, href: hrefOf.job(row) })),
    ...nodes
      .filter((row) => fits(row.name))
      .slice(0, FOUND_MAX)
      .map((row) => ({ text: row.name, kind: 'Node', href: hrefOf.node(row.name) })),
  ].slice(0, FOUND_MAX);
  const key = found.map((one) => one.href).join(' ');
  useEffect(() => onFound(found), [key]);
  return (
    <div
      class="results"
      role={found.length > 0 ? 'listbox' : 'status'}
      id="search-results"
      aria-label={found.length > 0 ? 'Search results' : undefined}
    >
      {found.length === 0 && <p class="muted">{workloads.data || workloads.error ? 'No matches.' : 'Searching …'}</p>}
      {found.map((one, index) => (
        <a
          key={one.href}
          id={`result-${index}`}
          href={one.href}
          role="option"
          aria-selected={index === chosen}
          tabIndex={-1}
        >
          <span class="cut">{one.text}</span>
          <span class="kind">{one.kind}</span>
        </a>
      ))}
    </div>
  );
}

function Search() {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const [count, setCount] = useState(0);
  const found = useRef<Found[]>([]);
  const input = useRef<HTMLInputElement>(null);
  const close = () => {
    setText('');
    setChosen(0);
    found.current = [];
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setChosen(Math.min(chosen + 1, found.current.length - 1));
    else if (event.key === 'ArrowUp') setChosen(Math.max(chosen - 1, 0));
    else if (event.key === 'Enter') {
      const one = found.current[Math.max(0, chosen)];
      if (!one) return;
      close();
      input.current?.blur();
      go(one.href);
    } else if (event.key === 'Escape') {
      close();
      input.current?.blur();
    } else return;
    event.preventDefault();
  };
  return (
    <div
      class="search"
      onKeyDown={keys}
      onFocusOut={(event) => {
        if (!(event.currentTarget as Element).contains(event.relatedTarget as Node | null)) setTimeout(close, 150);
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        id="search"
        type="text"
        role="combobox"
        aria-label="Search jobs, projects and nodes"
        aria-expanded={text !== ''}
        aria-controls="search-results"
        aria-activedescendant={text && chosen < count ? `result-${chosen}` : undefined}
        placeholder="Search"
        value={text}
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
      />
      {!text && <kbd>/</kbd>}
      {text && (
        <Results
          text={text}
          chosen={chosen}
          onFound={(list) => {
            found.current = list;
            setCount(list.length);
          }}
        />
      )}
    </div>
  );
}

const LINKS = {
  live: ['Live', 'Changes are shown as they happen.'],
  connecting: ['Connecting', 'The connection to the server is being made.'],
  polling: ['Every 2 s', 'There is no live connection, so the pages are read again every 2 s.'],
  paused: ['Paused', 'Nothing is updated until you continue.'],
  away: ['No connection', 'The server cannot be reached, so what is here is old. The pages ask it again every 2 s.'],
  hidden: ['Resting', 'The tab was hidden.'],
} as const;

function Top() {
  const state = link.value === 'polling' && !reached.value ? 'away' : link.value;
  const [word, meaning] = LINKS[state];
  const dark = document.documentElement.dataset.theme === 'dark';
  return (
    <header class="top">
      <span class="menu-button">
        <Button
          plain
          icon="menu"
          label="Open the menu"
          onClick={() => {
            drawer.value = true;
          }}
        />
      </span>
      <Search />
      <div class="right">
        <span class={`live is-${state}`} title={meaning} role="status">
          <span class="word">{word}</span>
          <span class="hidden-text">{meaning}</span>
        </span>
        <Button
          plain
          icon={paused.value ? 'play' : 'pause'}
          label={paused.value ? 'Continue updates' : 'Pause updates'}
          onClick={() => setPaused(!paused.value)}
        />
        <Button
          plain
          icon={dark ? 'sun' : 'moon'}
          label={dark ? 'Use light colours' : 'Use dark colours'}
          onClick={() => setTheme(dark ? 'light' : 'dark')}
        />
        <Menu
          plain
          toLeft
          icon="user"
          label={`User ${session.value?.user ?? ''}`}
          text={<span class="user-name">{session.value?.user}</span>}
        >
          <h3>{session.value?.user}</h3>
          {theme.value !== 'system' && (
            <button type="button" data-closes onClick={() => setTheme('system')}>
              Use the system’s colours
            </button>
          )}
          <a href="/settings" data-closes>
            Settings
          </a>
          <button type="button" data-closes onClick={() => void logout()}>
            Log out
          </button>
        </Menu>
      </div>
    </header>
  );
}

function KeyHelp({ done }: { done: () => void }) {
  const list: [string, string][] = [
    ['/', 'search'],
    ['?', 'these keys'],
    ['↑ ↓', 'rows of a table'],
    ['Esc', 'close'],
    ...ENTRIES.map((entry): [string, string] => [`g ${entry.key}`, entry.text]),
  ];
  return (
    <Dialog
      small
      title="Keys"
      onClose={done}
      onSubmit={done}
      foot={
        <Button type="submit" primary>
          Close
        </Button>
      }
    >
      <table class="list-table">
        <tbody>
          {list.map(([key, text]) => (
            <tr key={key}>
              <td style={{ width: '90px' }}>
                <kbd>{key}</kbd>
              </td>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}

const SECOND_KEY_MS = 1500;
function useKeys(): void {
  useEffect(() => {
    let pressed = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') drawer.value = false;
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input,textarea,select,dialog')) return;
      if (event.key === '/') {
        event.preventDefault();
        document.getElementById('search')?.focus();
      } else if (event.key === '?') {
        open((done) => <KeyHelp done={done} />);
      } else if (event.key === 'g') {
        pressed = event.timeStamp;
      } else if (event.timeStamp - pressed < SECOND_KEY_MS) {
        const entry = ENTRIES.find((one) => one.key === event.key);
        pressed = 0;
        if (entry) go(entry.href);
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

const NOTE_MS = 5_000;

export function Shell({ children }: { children: ComponentChildren }) {
  useKeys();
  const projects = useView<Rows<ProjectRow>>('projects').data?.rows;
  useEffect(() => {
    if (!projects) return undefined;
    learnProjects(projects);
    noteProjects(projects);
    const timer = setInterval(() => noteProjects(projects), NOTE_MS);
    return () => clearInterval(timer);
  }, [projects]);
  return (
    <>
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        Skip to the content
      </a>
      <div class="frame">
        <Rail />
        <div class="page">
          <Top />
          <main id="content" tabIndex={-1}>
            {children}
          </main>
        </div>
      </div>
      <Toasts />
    </>
  );
}
