// The table of all screens: search, filter chips, order, column chooser, CSV, selection, and only
// the rows in sight on the page.
import { Component, type ComponentChildren, type CSSProperties, type RefObject } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import {
  csv,
  distinct,
  download,
  fitting,
  matchesSearch,
  readFilters,
  sortRows,
  textOf,
  writeFilter,
  type Cell,
} from '../lib/rows.ts';
import { dropView, saveView, viewsOf } from '../lib/saved_views.ts';
import { go, keepScroll, keptScroll, place, setParams } from '../lib/router.ts';
import { number, plural } from '../lib/format.ts';
import { Button, Empty, Menu, Name, Notice, Skeleton } from './basic.tsx';
import { Icon } from './icons.tsx';

export interface Column<T> {
  key: string;
  title: string;
  value: (row: T) => Cell; // for order, search and CSV
  cell?: (row: T) => ComponentChildren; // if absent, the value as text
  width: number; // px, at least
  roomy?: number; // px at which its texts can be read; other columns are left out for that
  grow?: number; // its part of the space that is left
  num?: boolean;
  hidden?: boolean; // until it is chosen, or gives the order
  sparse?: boolean; // left out while no row has a value
  filter?: boolean; // offered as a filter
  state?: (row: T) => Cell; // what filters compare; if absent, the value
  spare?: number; // left out where the table is too narrow, the highest first
}

export interface GridProps<T> {
  name: string; // of the CSV file
  label: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  error?: string; // why they could not be read, or not read again
  rowKey: (row: T) => string;
  href?: (row: T) => string;
  empty: ComponentChildren;
  address?: boolean; // order, filters and columns are in the page's address
  bulk?: (chosen: T[], clear: () => void) => ComponentChildren;
  partial?: boolean;
  total?: number; // where `rows` are only the newest
  height?: string;
  plain?: boolean; // without search and filters
  sort?: string; // at first: "key" or "-key"
  order?: (rows: T[]) => T[]; // while no column is chosen; if absent, as the rows come
  what?: [string, string]; // "job", "jobs"
}

const VALUES_MAX = 200; // of a column, in the menu of filters
const ROW = 40;
const OVERSCAN = 8;
const CHECK_WIDTH = 40;
const BAR_WIDTH = 18; // of scrolling, and borders

// What the user chose: in the address of the page, or in this table only.
function useChoices(
  inAddress: boolean | undefined,
): [URLSearchParams, (changes: Record<string, string | null>) => void] {
  const [own, setOwn] = useState(() => new URLSearchParams());
  if (inAddress) return [place.value.params, setParams];
  return [
    own,
    (changes) => {
      const next = new URLSearchParams(own);
      for (const [key, value] of Object.entries(changes)) {
        if (value) next.set(key, value);
        else next.delete(key);
      }
      setOwn(next);
    },
  ];
}

function FilterMenu<T>({
  columns,
  rows,
  choices,
  choose,
}: {
  columns: Column<T>[];
  rows: T[];
  choices: URLSearchParams;
  choose: (changes: Record<string, string | null>) => void;
}) {
  const [key, setKey] = useState('');
  const column = columns.find((one) => one.key === key);
  const all = column ? distinct(rows, column.state ?? column.value) : [];
  const values = all.slice(0, VALUES_MAX);
  // The button that was pressed is gone with its list: the keyboard continues in the other one, at once.
  const start = useRef<HTMLButtonElement>(null);
  const before = useRef(key);
  useLayoutEffect(() => {
    if (before.current !== key) start.current?.focus();
    before.current = key;
  }, [key]);
  const picked = new Set(column ? (readFilters(choices, [key])[0]?.values ?? []) : []);
  const toggle = (value: string) => {
    const next = new Set(picked);
    if (!next.delete(value)) next.add(value);
    choose({ [key]: next.size ? writeFilter([...next]) : null });
  };
  return (
    <Menu text="Filter" icon="filter" label="Add a filter">
      {!column &&
        columns.map((one, at) => (
          <button type="button" key={one.key} ref={at === 0 ? start : undefined} onClick={() => setKey(one.key)}>
            {one.title}
          </button>
        ))}
      {column && (
        <>
          <button type="button" ref={start} onClick={() => setKey('')}>
            ‹ {column.title}
          </button>
          {values.map(({ value, count }) => (
            <label key={value}>
              <input type="checkbox" checked={picked.has(value)} onChange={() => toggle(value)} />
              {value || 'none'}
              <span class="count">{number(count)}</span>
            </label>
          ))}
          {all.length > values.length && (
            <p class="muted small">
              {number(all.length - values.length)} more are not listed: search for them in the table.
            </p>
          )}
        </>
      )}
    </Menu>
  );
}

function Chips<T>({
  columns,
  choices,
  choose,
}: {
  columns: Column<T>[];
  choices: URLSearchParams;
  choose: (changes: Record<string, string | null>) => void;
}) {
  const filters = readFilters(
    choices,
    columns.filter((one) => one.filter).map((one) => one.key),
  );
  return (
    <>
      {filters.map((filter) => {
        const title = columns.find((one) => one.key === filter.key)?.title ?? filter.key;
        return (
          <span class="chip" key={filter.key}>
            <span class="what">
              {title}: {filter.values.map((value) => value || 'none').join(', ')}
            </span>
            <button
              type="button"
              aria-label={`Remove the filter ${title}`}
              onClick={() => choose({ [filter.key]: null })}
            >
              <Icon name="close" />
            </button>
          </span>
        );
      })}
      {filters.length > 1 && (
        <Button plain onClick={() => choose(Object.fromEntries(filters.map((one) => [one.key, null])))}>
          Clear
        </Button>
      )}
    </>
  );
}

function ColumnMenu<T>({
  columns,
  shown,
  choose,
}: {
  columns: Column<T>[];
  shown: Column<T>[];
  choose: (changes: Record<string, string | null>) => void;
}) {
  const toggle = (key: string) => {
    const next = columns.filter((one) => (one.key === key) !== shown.includes(one)).map((one) => one.key);
    const usual = columns.filter((one) => !one.hidden).map((one) => one.key);
    choose({ cols: next.join() === usual.join() ? null : next.join() });
  };
  return (
    <Menu icon="columns" label="Choose columns" toLeft>
      {columns.slice(1).map((one) => (
        <label key={one.key}>
          <input type="checkbox" checked={shown.includes(one)} onChange={() => toggle(one.key)} />
          {one.title}
        </label>
      ))}
      <div class="ends">
        <Button plain onClick={() => choose({ cols: null })}>
          Usual columns
        </Button>
      </div>
    </Menu>
  );
}

// The rows in sight of a scrolled box.
function useWindow(box: RefObject<HTMLDivElement | null>, count: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, 40]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    let frame = 0;
    const measure = () => {
      frame = 0;
      const first = Math.max(0, Math.floor(element.scrollTop / ROW) - OVERSCAN);
      const last = Math.ceil((element.scrollTop + element.clientHeight) / ROW) + OVERSCAN;
      setRange((old) =>
        Math.abs(old[0] - first) < OVERSCAN / 2 && Math.abs(old[1] - last) < OVERSCAN / 2 ? old : [first, last],
      );
    };
    const later = () => {
      element.classList.toggle('aside', element.scrollLeft > 0);
      if (!frame) frame = requestAnimationFrame(measure);
    };
    element.addEventListener('scroll', later, { passive: true });
    const sizes = new ResizeObserver(later);
    sizes.observe(element);
    measure();
    return () => {
      element.removeEventListener('scroll', later);
      sizes.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
  return [Math.min(range[0], Math.max(0, count - 1)), Math.min(range[1], count)];
}

function useWidth(frame: RefObject<HTMLDivElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const measure = () => setWidth(element.clientWidth);
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    measure();
    return () => sizes.disconnect();
  }, []);
  return width;
}

function useShownRows<T>(props: GridProps<T>, choices: URLSearchParams): T[] {
  const { rows, columns } = props;
  const search = props.plain ? '' : (choices.get('q') ?? '');
  const sort = choices.get('sort') ?? props.sort ?? '';
  const filters = props.plain
    ? []
    : readFilters(
        choices,
        columns.filter((one) => one.filter).map((one) => one.key),
      );
  return useMemo(() => {
    let found = rows ?? [];
    for (const filter of filters) {
      const column = columns.find((one) => one.key === filter.key);
      const wanted = new Set(filter.values);
      if (column) found = found.filter((row) => wanted.has(textOf((column.state ?? column.value)(row))));
    }
    if (search)
      found = found.filter((row) =>
        matchesSearch(
          columns.map((one) => one.value(row)),
          search,
        ),
      );
    const column = columns.find((one) => one.key === sort.replace(/^-/, ''));
    if (column) return sortRows(found, column.value, sort.startsWith('-'));
    return props.order ? props.order(found) : found;
  }, [rows, search, sort, JSON.stringify(filters)]);
}

type Direction = 'ascending' | 'descending' | 'none';

function directionOf(key: string, sort: string): Direction {
  if (sort === key) return 'ascending';
  return sort === `-${key}` ? 'descending' : 'none';
}

function HeadRow<T>({
  columns,
  sort,
  choose,
  pick,
}: {
  columns: Column<T>[];
  sort: string;
  choose: (changes: Record<string, string | null>) => void;
  pick?: ComponentChildren;
}) {
  const turn = (key: string) => {
    const next = { none: key, ascending: `-${key}`, descending: null };
    choose({ sort: next[directionOf(key, sort)] });
  };
  return (
    <div role="row" class="grid-row grid-head" aria-rowindex={1}>
      {pick && <div role="columnheader">{pick}</div>}
      {columns.map((column, index) => {
        const direction = directionOf(column.key, sort);
        return (
          <div
            role="columnheader"
            key={column.key}
            class={`${column.num ? 'num' : ''}${index === 0 ? ' stick' : ''}`}
            aria-sort={direction}
          >
            <button type="button" onClick={() => turn(column.key)}>
              <span class="cut">{column.title}</span>
              {direction !== 'none' && <Icon name={direction === 'ascending' ? 'up' : 'down'} />}
            </button>
          </div>
        );
      })}
    </div>
  );
}

interface RowProps<T> {
  row: T;
  index: number;
  columns: Column<T>[];
  href?: string;
  chosen?: boolean;
  onChoose?: (key: string) => void;
  id: string;
  label: string;
}

// A row that stays as it is costs nothing while others scroll in.
class BodyRow<T> extends Component<RowProps<T>> {
  // A new state means that a signal which the row reads has changed.
  override shouldComponentUpdate(next: RowProps<T>, state: object): boolean {
    const old = this.props;
    return (
      state !== this.state ||
      next.row !== old.row ||
      next.index !== old.index ||
      next.columns !== old.columns ||
      next.chosen !== old.chosen ||
      next.href !== old.href
    );
  }

  override render({ row, index, columns, href, chosen, onChoose, id, label }: RowProps<T>) {
    const open = (event: MouseEvent) => {
      if (href && !(event.target as Element).closest('a,button,input,label')) go(href);
    };
    return (
      <div
        role="row"
        class={`grid-row${href ? ' goes' : ''}${chosen ? ' chosen' : ''}`}
        aria-rowindex={index + 2}
        style={{ top: `${index * ROW}px` }}
        onClick={open}
      >
        {onChoose && (
          <div role="cell">
            <input type="checkbox" aria-label={`Choose ${label}`} checked={chosen} onChange={() => onChoose(id)} />
          </div>
        )}
        {columns.map((column, at) => {
          const text = textOf(column.value(row)) || '–';
          const plain = at === 0 ? <Name text={text} /> : <span class="cut">{text}</span>;
          const content = column.cell ? column.cell(row) : plain;
          return (
            <div role="cell" key={column.key} class={`${column.num ? 'num' : ''}${at === 0 ? ' stick' : ''}`}>
              {at === 0 && href ? (
                <a class="name-link cut" href={href} data-row={index} title={label} aria-label={label}>
                  {content}
                </a>
              ) : (
                content
              )}
            </div>
          );
        })}
      </div>
    );
  }
}

// Scrolling renders this part alone.
function Body<T>({
  box,
  rows,
  columns,
  rowKey,
  href,
  chosen,
  toggle,
  least,
}: {
  box: RefObject<HTMLDivElement | null>;
  rows: T[];
  columns: Column<T>[];
  rowKey: (row: T) => string;
  href?: (row: T) => string;
  chosen?: Set<string>;
  toggle?: (key: string) => void;
  least: number;
}) {
  const [first, last] = useWindow(box, rows.length);
  return (
    <div class="grid-body" role="rowgroup" style={{ height: `${rows.length * ROW}px`, minWidth: `${least}px` }}>
      {rows.slice(first, last).map((row, offset) => {
        const key = rowKey(row);
        return (
          <BodyRow<T>
            key={key}
            id={key}
            row={row}
            index={first + offset}
            columns={columns}
            href={href?.(row)}
            label={textOf(columns[0]?.value(row))}
            chosen={chosen?.has(key)}
            onChoose={toggle}
          />
        );
      })}
    </div>
  );
}

function ViewMenu({ table }: { table: string }) {
  const [name, setName] = useState('');
  const views = viewsOf(table);
  const save = () => {
    if (!name.trim()) return;
    saveView(table, name.trim(), place.peek().params.toString());
    setName('');
  };
  return (
    <Menu text="Views" label="Saved views" toLeft>
      {views.length === 0 && <h3>No view is saved yet</h3>}
      {views.map((view) => (
        <div class="bar-line" key={view.name} style={{ flexWrap: 'nowrap', gap: 0 }}>
          <a data-closes href={`${place.value.path}${view.search ? `?${view.search}` : ''}`}>
            {view.name}
          </a>
          <Button
            plain
            icon="close"
            label={`Forget the view ${view.name}`}
            onClick={() => dropView(table, view.name)}
          />
        </div>
      ))}
      <form
        class="ends"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <input
          aria-label="Name of the view"
          placeholder="Save this view as"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" plain>
          Save
        </Button>
      </form>
    </Menu>
  );
}

// The columns that are shown: those that the user chose, else the usual ones that fit. The column by which the rows are
// sorted is among them.
function useShownColumns<T>(
  props: GridProps<T>,
  choices: URLSearchParams,
  width: number,
): { visible: Column<T>[]; unfit: number; widths: number[] } {
  const { columns, rows } = props;
  const named = choices.get('cols');
  const sorted = (choices.get('sort') ?? '').replace(/^-/, '');
  const silent = useMemo(() => {
    const found = columns.filter((one) => one.sparse && !rows?.some((row) => textOf(one.value(row)) !== ''));
    return found.map((one) => one.key).join();
  }, [columns, rows]);
  const room = width - BAR_WIDTH - (props.bulk ? CHECK_WIDTH : 0);
  const usual = useMemo(() => {
    const without = silent.split(',');
    return columns.filter(
      (one, index) => index === 0 || one.key === sorted || (!one.hidden && !without.includes(one.key)),
    );
  }, [columns, silent, sorted]);
  const visible = useMemo(() => {
    const keys = named?.split(',');
    if (keys) return columns.filter((one, index) => index === 0 || keys.includes(one.key));
    return fitting(usual, room, sorted);
  }, [columns, usual, named, room, sorted]);
  const roomy = visible.map((one) => one.roomy ?? one.width);
  const fits = roomy.reduce((sum, one) => sum + one, 0) <= room;
  return {
    visible,
    unfit: named ? 0 : usual.length - visible.length,
    widths: fits ? roomy : visible.map((one) => one.width),
  };
}

// The arrow and page keys go from row to row.
function useRowKeys(box: RefObject<HTMLDivElement | null>, count: number): (event: KeyboardEvent) => void {
  const focusRow = (index: number) => {
    const element = box.current;
    if (!element || index < 0 || index >= count) return;
    const top = index * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + 2 * ROW > element.scrollTop + element.clientHeight)
      element.scrollTop = top + 2 * ROW - element.clientHeight;
    requestAnimationFrame(() =>
      requestAnimationFrame(() => element.querySelector<HTMLElement>(`[data-row="${index}"]`)?.focus()),
    );
  };
  return (event) => {
    const at = (event.target as HTMLElement).dataset.row;
    if (at === undefined) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 400) / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    focusRow(Math.max(0, Math.min(count - 1, Number(at) + step)));
  };
}

function ToolBar<T>({
  props,
  shown,
  visible,
  choices,
  choose,
}: {
  props: GridProps<T>;
  shown: T[];
  visible: Column<T>[];
  choices: URLSearchParams;
  choose: (changes: Record<string, string | null>) => void;
}) {
  const { columns, rows } = props;
  const filtering = columns.filter((column) => column.filter);
  const save = () => {
    const header = visible.map((one) => one.title);
    const cells = shown.map((row) => visible.map((one) => one.value(row)));
    download(`${props.name}.csv`, csv(header, cells), 'text/csv');
  };
  return (
    <div class="bar-line">
      <div class="search grow">
        <Icon name="search" />
        <input
          type="search"
          aria-label={`Search ${props.label}`}
          placeholder="Search this table"
          value={choices.get('q') ?? ''}
          onInput={(event) => choose({ q: event.currentTarget.value })}
        />
      </div>
      {filtering.length > 0 && <FilterMenu columns={filtering} rows={rows ?? []} choices={choices} choose={choose} />}
      <Chips columns={columns} choices={choices} choose={choose} />
      <div class="right">
        {props.address && <ViewMenu table={props.name} />}
        <ColumnMenu columns={columns} shown={visible} choose={choose} />
        <Button icon="download" label="Download as CSV" onClick={save} disabled={shown.length === 0} />
      </div>
    </div>
  );
}

const namesOf = <T,>(props: GridProps<T>): [string, string] => props.what ?? ['row', 'rows'];

function Foot<T>({ props, shown, unfit }: { props: GridProps<T>; shown: number; unfit: number }) {
  const [one, many] = namesOf(props);
  const all = props.rows?.length ?? 0;
  return (
    <div class="grid-foot">
      <span>{shown === all ? plural(all, one, many) : `${number(shown)} of ${plural(all, one, many)}`}</span>
      {unfit > 0 && <span>{plural(unfit, 'column does', 'columns do')} not fit; the menu of columns has them.</span>}
      {(props.total ?? 0) > all && (
        <span>
          The newest {number(all)} of {number(props.total)} are here.
        </span>
      )}
      {props.partial && <span>There is more that you have no right to read.</span>}
    </div>
  );
}

const SETTLED_MS = 150;

// Another search or order begins at its first row. `kept`: the page's entry in the history knows how far one was.
function useKeptScroll(box: RefObject<HTMLDivElement | null>, kept: boolean, order: string): void {
  const shown = useRef(order);
  useEffect(() => {
    if (box.current && shown.current !== order) box.current.scrollTop = 0;
    shown.current = order;
  }, [order]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !kept) return undefined;
    element.scrollTop = keptScroll();
    let timer = 0;
    const later = () => {
      clearTimeout(timer);
      timer = window.setTimeout(() => keepScroll(element.scrollTop), SETTLED_MS);
    };
    element.addEventListener('scroll', later, { passive: true });
    return () => {
      clearTimeout(timer);
      element.removeEventListener('scroll', later);
    };
  }, [kept]);
}

interface TableProps<T> {
  props: GridProps<T>;
  shown: T[];
  visible: Column<T>[];
  unfit: number;
  least: number;
  choices: URLSearchParams;
  choose: (changes: Record<string, string | null>) => void;
  chosen: Set<string>;
  setChosen: (change: (old: Set<string>) => Set<string>) => void;
}

function Table<T>({ props, shown, visible, unfit, least, choices, choose, chosen, setChosen }: TableProps<T>) {
  const { rowKey } = props;
  const box = useRef<HTMLDivElement>(null);
  const keys = useRowKeys(box, shown.length);
  useKeptScroll(box, props.address === true, `${choices.get('q')} ${choices.get('sort')}`);
  const toggle = (key: string) =>
    setChosen((old) => {
      const next = new Set(old);
      if (!next.delete(key)) next.add(key);
      return next;
    });
  const allChosen = shown.length > 0 && shown.every((row) => chosen.has(rowKey(row)));
  const all = props.bulk && (
    <input
      type="checkbox"
      aria-label="Choose all rows"
      checked={allChosen}
      onChange={() => setChosen(() => (allChosen ? new Set() : new Set(shown.map(rowKey))))}
    />
  );
  return (
    <>
      <div
        class="grid-scroll"
        ref={box}
        onKeyDown={keys}
        tabIndex={props.href ? undefined : 0}
        role="table"
        aria-label={props.label}
        aria-rowcount={shown.length + 1}
        aria-colcount={visible.length}
      >
        <HeadRow columns={visible} sort={choices.get('sort') ?? props.sort ?? ''} choose={choose} pick={all} />
        <Body
          box={box}
          rows={shown}
          columns={visible}
          rowKey={rowKey}
          href={props.href}
          chosen={props.bulk && chosen}
          toggle={props.bulk && toggle}
          least={least}
        />
        {shown.length === 0 && <Empty title="Nothing matches">Remove a filter, or search for something else.</Empty>}
      </div>
      <Foot props={props} shown={shown.length} unfit={unfit} />
    </>
  );
}

export function Grid<T>(props: GridProps<T>) {
  const { rows, rowKey } = props;
  const [choices, choose] = useChoices(props.address);
  const shown = useShownRows(props, choices);
  const [chosen, setChosen] = useState<Set<string>>(() => new Set());
  const frame = useRef<HTMLDivElement>(null);
  const { visible, unfit, widths } = useShownColumns(props, choices, useWidth(frame));
  // Not those that a filter hides: nobody changes what they do not see.
  const picked = props.bulk && chosen.size > 0 ? shown.filter((row) => chosen.has(rowKey(row))) : [];
  const clear = () => setChosen(new Set());
  const tracks = visible.map((one, at) => `minmax(${widths[at]}px, ${one.grow ?? 1}fr)`);
  const template = [props.bulk ? `${CHECK_WIDTH}px` : '', ...tracks].join(' ');
  const least = widths.reduce((sum, one) => sum + one, props.bulk ? CHECK_WIDTH : 0);
  const style = {
    '--cols': template,
    '--min': `${least}px`,
    ...(props.height ? { '--grid-height': props.height } : {}),
  } as CSSProperties;
  const failed = Boolean(props.error) && !rows; // there is nothing to search or to wait for
  return (
    <div class="stack" style={{ gap: '12px' }}>
      {props.error && (
        <Notice tone="bad">
          {props.label} could not be read: {props.error}
        </Notice>
      )}
      {!props.plain && !failed && (
        <ToolBar props={props} shown={shown} visible={visible} choices={choices} choose={choose} />
      )}
      {picked.length > 0 && props.bulk && (
        <div class="bulk">
          <strong>{plural(picked.length, ...namesOf(props))} chosen</strong>
          {props.bulk(picked, clear)}
          <Button plain onClick={clear}>
            Clear
          </Button>
        </div>
      )}
      <div class="grid" style={style} ref={frame} hidden={failed}>
        {rows === undefined && !failed && (
          <div style={{ padding: '16px' }}>
            <Skeleton lines={6} height={18} />
          </div>
        )}
        {rows?.length === 0 && props.empty}
        {rows !== undefined && rows.length > 0 && (
          <Table
            props={props}
            shown={shown}
            visible={visible}
            unfit={unfit}
            least={least}
            choices={choices}
            choose={choose}
            chosen={chosen}
            setChosen={setChosen}
          />
        )}
      </div>
    </div>
  );
}
