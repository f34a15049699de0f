// Users of the embedded cluster and their projects; for administrators.
import { json } from '../lib/api.ts';
import { may } from '../lib/access.ts';
import { useView } from '../lib/live.ts';
import { hrefOf } from '../lib/router.ts';
import type { Rows, UserRow } from '../lib/types.ts';
import { Age, Button, Empty, Head, toast } from '../parts/basic.tsx';
import { confirm, open } from '../parts/dialog.tsx';
import { Grid, type Column } from '../parts/grid.tsx';
import { KubeconfigForm, UserForm } from '../parts/user_form.tsx';

function remove(name: string): void {
  confirm({
    title: `Delete the user ${name}?`,
    danger: true,
    action: 'Delete',
    text: 'Their credentials are invalid at once, and what they have open is closed. Their workloads stay.',
    run: async () => {
      await json('DELETE', `/ui/api/users?${new URLSearchParams({ name })}`);
      toast(`User ${name} was deleted.`);
    },
  });
}

function Actions({ row }: { row: UserRow }) {
  return (
    <span class="nowrap">
      <Button
        plain
        icon="key"
        label={`New credentials for ${row.name}`}
        onClick={() => open((done) => <KubeconfigForm name={row.name} done={done} />)}
      />
      <Button plain icon="trash" label={`Delete ${row.name}`} onClick={() => remove(row.name)} />
    </span>
  );
}

// A role may be written both with the user and in the project.
function rolesOf({ projects = [] }: UserRow): { name: string; role: string }[] {
  return [...new Map(projects.map((one) => [`${one.name} ${one.role}`, one])).values()];
}

const COLUMNS: Column<UserRow>[] = [
  {
    key: 'name',
    title: 'User',
    value: (row) => row.name,
    cell: (row) => (
      <a class="cut" href={hrefOf.audit(row.name)} title={`What ${row.name} did`}>
        {row.name}
      </a>
    ),
    width: 180,
  },
  { key: 'role', title: 'Role', value: (row) => row.role, width: 132, grow: 0.5, filter: true },
  { key: 'groups', title: 'Groups', value: (row) => row.groups?.join(', '), width: 200, spare: 1 },
  {
    key: 'projects',
    title: 'Projects',
    value: (row) =>
      rolesOf(row)
        .map((one) => `${one.name} (${one.role})`)
        .join(', '),
    width: 280,
    grow: 2,
    cell: (row) => (
      <span class="cut">
        {row.projects?.length
          ? rolesOf(row).map((one, at) => (
              <>
                {at > 0 && ', '}
                <a href={hrefOf.project(one.name, 'members')}>{one.name}</a> <span class="muted">{one.role}</span>
              </>
            ))
          : '–'}
      </span>
    ),
  },
  { key: 'runAs', title: 'Runs as', value: (row) => row.runAs, width: 110, grow: 0.5, spare: 9 },
  {
    key: 'created',
    title: 'Created',
    value: (row) => row.created,
    cell: (row) => <Age time={row.created} />,
    width: 120,
    grow: 0.5,
    spare: 8,
  },
];

// One list for all updates: a new one would draw every row again.
const EDITED_COLUMNS: Column<UserRow>[] = [
  ...COLUMNS,
  {
    key: 'actions',
    title: 'Actions',
    value: () => '',
    cell: (row) => <Actions row={row} />,
    width: 100,
    grow: 0,
  },
];

export function Users() {
  const view = useView<Rows<UserRow>>('users');
  const create = may('create', '', 'secrets', 'kube-system');
  const make = () => open((done) => <UserForm done={done} />);
  const button = create && (
    <Button primary icon="plus" onClick={make}>
      New user
    </Button>
  );
  return (
    <>
      <Head title="Users">{button}</Head>
      <Grid
        name="users"
        label="Users"
        error={view.error}
        rows={view.data?.rows}
        rowKey={(row) => row.name}
        address
        what={['user', 'users']}
        partial={view.data?.partial}
        empty={
          <Empty title="There are no users">
            <p>
              You are the administrator of this cluster. Make a user for each person who shares it; they see and use
              their projects.
            </p>
            {button}
          </Empty>
        }
        columns={create ? EDITED_COLUMNS : COLUMNS}
      />
    </>
  );
}
