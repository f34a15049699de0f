// The lines of swell why: "Quota:    vision holds 4/4 GPUs" is a fact with a label, and a table begins with "Nodes:".

export interface WhyLines {
  facts: [string, string][];
  rest: string[];
}

export function labelled(lines: string[]): WhyLines {
  const facts: [string, string][] = [];
  for (const [at, line] of lines.entries()) {
    const found = /^([A-Z][A-Za-z ]*): +(\S.*)$/.exec(line);
    if (!found?.[1] || !found[2]) return { facts, rest: lines.slice(at) };
    facts.push([found[1], found[2]]);
  }
  return { facts, rest: [] };
}
