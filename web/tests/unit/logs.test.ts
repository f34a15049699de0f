// Logs: colours, lines that are drawn again, their order, and where they are found.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pieces, plainText } from '../../src/lib/ansi.ts';
import { attemptsOf, chooseParts, markOf, pathOfLog, titleOf } from '../../src/lib/log_parts.ts';
import { fractionOf, merge, parseLine, readLines, underWay } from '../../src/lib/logs.ts';
import type { LogPart } from '../../src/lib/types.ts';

test('colours of a log line become styles, and other control characters nothing', () => {
  assert.deepEqual(pieces('a\u001b[1;31mred\u001b[0m b'), [
    { text: 'a', style: '' },
    { text: 'red', style: 'ansi-red ansi-bold' },
    { text: ' b', style: '' },
  ]);
  const styles = (line: string) => pieces(line).map((piece) => piece.style);
  assert.deepEqual(styles('\u001b[38;5;31mblue\u001b[38;5;208morange\u001b[38;5;244mgrey'), [
    'ansi-cyan',
    'ansi-yellow',
    '',
  ]);
  assert.deepEqual(styles('\u001b[38;2;255;31;1mred\u001b[48;2;0;31;1mon green'), ['ansi-red', 'ansi-red']);
  assert.deepEqual(pieces('\u001b[2Kx\u0007'), [{ text: 'x', style: '' }]);
  assert.equal(plainText('\u001b[32mok\u001b[m\u001b]0;title\u0007'), 'ok');
});

test('what follows a sequence of any form is shown, and nothing of the sequence', () => {
  const esc = '\u001b';
  assert.equal(plainText(`${esc}]0;title${esc}\\after`), 'after');
  assert.equal(plainText(`see ${esc}]8;;http://a/b${esc}\\the page${esc}]8;;${esc}\\ now`), 'see the page now');
  assert.equal(plainText(`${esc}]8;;http://a${esc}[31mred`), 'red');
  assert.equal(plainText(`one${esc}]0;never ended`), 'one');
  assert.equal(plainText(`${esc}Pq#0${esc}\\a${esc}_x\u0007b`), 'ab');
  assert.equal(plainText(`${esc}[?25l${esc}[2 q10%${esc}[K${esc}[?25h`), '10%');
  assert.equal(plainText(`${esc}(B${esc}7bold${esc}8${esc}=`), 'bold');
  assert.equal(plainText(`cut${esc}[3`), 'cut');
  const style = (line: string) => pieces(line).at(-1)?.style;
  assert.equal(style(`${esc}[38:2::255:31:1mred`), 'ansi-red');
  assert.equal(style(`${esc}[38:5:31mcyan`), 'ansi-cyan');
  assert.equal(style(`${esc}[32m${esc}[4:3m${esc}[58;5;31mgreen`), 'ansi-green');
  assert.equal(style(`${esc}[31m${esc}[>4;2mred`), 'ansi-red');
});

test('a line that is drawn again shows what was drawn last', async () => {
  const text = (line: string) => parseLine('a', line, 0).text;
  assert.equal(text('2026-01-01T00:00:00Z 10%\r50%\r100%'), '100%');
  assert.equal(plainText(text('of Windows\r')), 'of Windows');
  assert.equal(underWay('2026-01-01T00:00:00Z 10%\r50%\r'), '2026-01-01T00:00:00Z 50%\r');
  const said: string[] = [];
  const parts = ['T one\nT 1', '0%', '\rT 20%\r', '30%', '\nlast'].map((part) => new TextEncoder().encode(part));
  const body = new ReadableStream<Uint8Array>({
    start(control) {
      for (const part of parts) control.enqueue(part);
      control.close();
    },
  });
  await readLines(body, (lines, rest) => said.push(`${lines.join('|')} > ${rest}`));
  assert.deepEqual(said, ['T one > T 1', ' > T 10%', ' > T 20%\r', ' > 30%', '30% > last', 'last > ']);
});

test('a clock with thousandths has no more than the line knows', () => {
  assert.equal(fractionOf('2026-01-01T00:00:03.123456789Z'), '.123');
  assert.equal(fractionOf('2026-01-01T00:00:03.1Z'), '.1');
  assert.equal(fractionOf('2026-01-01T00:00:03Z'), '');
});

test('merged logs are in order of time, and lines of a pod keep theirs', () => {
  const line = (pod: string, text: string, seq: number) => parseLine(pod, text, seq);
  const a = [line('a', '2026-01-01T00:00:01.5Z one', 0), line('a', '2026-01-01T00:00:03Z three', 1)];
  const b = [line('b', '2026-01-01T00:00:01.50001Z two', 2), line('b', '2026-01-01T00:00:03Z four', 3)];
  assert.deepEqual(
    merge(a, b).map((one) => one.text),
    ['one', 'two', 'three', 'four'],
  );
  assert.deepEqual(parseLine('a', 'no time', 0), { pod: 'a', time: '', text: 'no time', seq: 0 });
});

test('logs are chosen by member and attempt, and found where they are', () => {
  const part = (member: string, attempt: number, start: number, more: Partial<LogPart> = {}): LogPart => ({
    key: `${member}${attempt}/${start}`,
    uid: `${member}${attempt}`,
    member,
    node: 'n',
    container: 'c',
    attempt,
    start,
    live: false,
    running: false,
    ...more,
  });
  const old = part('job-worker-0', 1, 1, { result: 'preempted' });
  const before = part('job-worker-0', 2, 1);
  const now = part('job-worker-0', 2, 2, { live: true, running: true });
  const other = part('job-worker-1', 1, 1, { live: true, running: true });
  const all = [old, before, now, other];
  const keys = (parts: LogPart[]) => parts.map((one) => one.key);
  assert.deepEqual(keys(chooseParts(all, '', '')), keys(all));
  assert.deepEqual(keys(chooseParts(all, '', 'last')), keys([now, other]));
  assert.deepEqual(keys(chooseParts(all, 'job-worker-0', '2')), keys([before, now]));
  assert.deepEqual(attemptsOf(all), [1, 2]);
  assert.equal(titleOf('job', old), 'worker-0, attempt 1, preempted');
  assert.deepEqual(
    [markOf('job', now, true), markOf('job', old, true), markOf('job', other, false)],
    ['worker-0 #2.2', 'worker-0 #1', 'worker-1'],
  );
  const pods = '/api/v1/namespaces/ns/pods/job-worker-0/log';
  assert.equal(pathOfLog('ns', now, all, { tailLines: 5 }), `${pods}?timestamps=true&container=c&tailLines=5`);
  assert.equal(pathOfLog('ns', before, all, {}), `${pods}?timestamps=true&container=c&previous=true`);
  assert.equal(pathOfLog('ns', old, all, {}), `${pods}/job-worker-01?timestamps=true&container=c&node=n&restart=0`);
});
