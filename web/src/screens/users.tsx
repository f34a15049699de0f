// Users of the embedded cluster and their projects; for administrators.
import { useView } from '../lib/live.ts';
import { hrefOf } from '../lib/router.ts';
import type { Rows, UserRow } from '../lib/types.ts';
import { Age, Empty, Head, Notice } from '../parts/basic.tsx';
import { Grid } from '../parts/grid.tsx';

export function Users() {
  const view = useView<Rows<UserRow>>('users');
  return (
    <>
      <Head title="Users" />
      {view.error && <Notice tone="bad">Users could not be read: {view.error}</Notice>}
      {!(view.error && !view.data) && <Grid name="users" label="Users" rows={view.data?.rows} rowKey={(row) => row.name} address what={['user', 'users']} partial={view.data?.partial}
        empty={<Empty title="There are no users"><p>You are the administrator of this cluster. Give others an account with <code>swell user create NAME</code>, then make them members of a project.</p></Empty>}
        columns={[
          { key: 'name', title: 'User', value: (row) => row.name, width: 180 },
          { key: 'role', title: 'Role', value: (row) => row.role, width: 120, grow: 0.5, filter: true },
          { key: 'groups', title: 'Groups', value: (row) => row.groups?.join(', '), width: 200 },
          { key: 'projects', title: 'Projects', value: (row) => row.projects?.map((one) => `${one.name} (${one.role})`).join(', '), width: 280, grow: 2,
            cell: (row) => <span class="cut">{row.projects?.length ? row.projects.map((one, at) => <>{at > 0 && ', '}<a href={hrefOf.project(one.name, 'members')}>{one.name}</a> <span class="muted">{one.role}</span></>) : '–'}</span> },
          { key: 'runAs', title: 'Runs as', value: (row) => row.runAs, width: 110, grow: 0.5 },
          { key: 'created', title: 'Created', value: (row) => row.created, cell: (row) => <Age time={row.created} />, width: 120, grow: 0.5 },
        ]} />}
    </>
  );
}
