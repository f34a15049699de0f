// Line icons on a grid of 24.
const PATHS = {
  home: 'M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z',
  jobs: 'M4 6h16M4 12h16M4 18h10',
  crons: 'M4 12a8 8 0 1 0 2.500-5.800L4 8.500M4 4v4.500h4.500M12 8v4l3 2',
  projects: 'M4 7a2 2 0 0 1 2-2h4l2 2h6a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2z',
  pools: 'M12 4 3.500 8.500 12 13l8.500-4.500zM3.500 13 12 17.500 20.500 13M3.500 17 12 21.500 20.500 17',
  nodes: 'M5 4h14v6H5zM5 14h14v6H5zM8.500 7h.01M8.500 17h.01',
  analytics: 'M5 20V10M12 20V4M19 20v-7',
  whatif: 'M6 4v9a4 4 0 0 0 4 4h8m0 0-3-3m3 3-3 3M6 4 3 7m3-3 3 3',
  events: 'M12 7v5l3 2M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z',
  users:
    'M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7z' +
    'M3 20c0-3.300 2.700-6 6-6s6 2.700 6 6M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c1.900.9 3 3 3 5.500',
  settings:
    'M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z' +
    'M12 3v3m0 12v3m9-9h-3M6 12H3' +
    'm15.400-6.400-2.200 2.200M7.800 16.200l-2.200 2.200m12.800 0-2.200-2.200M7.800 7.800 5.600 5.600',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  download: 'M12 4v11m0 0-4-4m4 4 4-4M5 20h14',
  columns: 'M4 5h16v14H4zM10 5v14M15 5v14',
  filter: 'M4 6h16l-6 7v5l-4 2v-7z',
  sun:
    'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z' +
    'M12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.500 1.500M17.500 17.500 19 19M19 5l-1.500 1.500M6.500 17.500 5 19',
  moon: 'M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500z',
  pause: 'M9 5v14M15 5v14',
  play: 'M8 5l11 7-11 7z',
  trash: 'M5 7h14M10 7V4h4v3m3 0-1 13H8L7 7',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.600-7 8-7s8 3 8 7',
  key: 'M14 10a4 4 0 1 0-3.4 3.95L12 15.4h2v2h2v2h4v-3l-6.2-6.2z',
  edit: 'M4 20h4L19 9l-4-4L4 16z',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#1d5fd1" />
      <path
        d="M5 19c3.500 0 3.500-6 7.300-6s3.800 6 7.400 6 3.500-6 7.300-6"
        fill="none"
        stroke="#fff"
        stroke-width="3"
        stroke-linecap="round"
      />
    </svg>
  );
}
