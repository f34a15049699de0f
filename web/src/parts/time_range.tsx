// The time that the charts of a page show, up to now; it is in the page's address.
import { param, setParams } from '../lib/router.ts';
import { Segments } from './basic.tsx';

const USUAL_S = 3600;
const RANGES: [number, string][] = [
  [900, '15 min'],
  [3600, '1 h'],
  [86400, '24 h'],
  [604800, '7 d'],
  [2592000, '30 d'],
];

export const chosenSeconds = () => Number(param('range')) || USUAL_S;

export function TimeRange({ least = USUAL_S }: { least?: number }) {
  const options = RANGES.filter(([seconds]) => seconds >= least);
  return (
    <Segments
      label="Time"
      value={String(chosenSeconds())}
      options={options.map(([seconds, text]): [string, string] => [String(seconds), text])}
      onChange={(range) => setParams({ range: Number(range) === USUAL_S ? null : range })}
    />
  );
}
