// What is wrong with the name of an image, by the rule of the nodes that pull it (src/kube/images/reference.cc).
const STEP = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const HOST = /^(?:(?![-.])[A-Za-z0-9.-]*[A-Za-z0-9-]|\[[0-9A-Fa-f:]+\])(?::(\d+))?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const NAME_MAX = 255;

function wrongPath(path: string): string | undefined {
  if (!path) return 'The name of the repository is missing.';
  for (const step of path.split('/')) {
    if (STEP.test(step)) continue;
    if (!step) return 'There is nothing between two slashes.';
    if (/\s/.test(step)) return `"${step}" has a space; an image name has none.`;
    if (/[A-Z]/.test(step)) return `"${step}" has a capital letter; repositories are written with small ones.`;
    return `"${step}" is not a part of a repository’s name: a-z and 0-9, joined by one of ".", "_", "__", "-".`;
  }
  return undefined;
}

// undefined: nothing is wrong.
export function wrongImage(text: string): string | undefined {
  const [named = '', ...digests] = text.split('@');
  const digest = digests.join('@');
  if (digests.length > 0 && !/^sha256:[0-9a-f]{64}$/.test(digest))
    return `"${digest}" is not a digest: "sha256:" and 64 digits 0-9, a-f.`;
  const colon = named.lastIndexOf(':');
  const tagged = colon > named.lastIndexOf('/');
  const tag = named.slice(colon + 1);
  if (tagged && !tag) return 'The tag after ":" is missing. Enter one, such as "latest", or remove the ":".';
  if (tagged && !TAG.test(tag))
    return `"${tag}" is not a tag: up to 128 letters, digits, "_", ".", "-", not beginning with "." or "-".`;
  const name = tagged ? named.slice(0, colon) : named;
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(0, slash));
  const hosted = slash >= 0 && (first === 'localhost' || /[.:[A-Z]/.test(first));
  if (hosted) {
    const port = HOST.exec(first)?.[1];
    if (!HOST.test(first) || (port !== undefined && (Number(port) < 1 || Number(port) > 65535)))
      return `"${first}" is not a registry’s address.`;
  }
  const path = hosted ? name.slice(slash + 1) : name;
  if (/^[0-9a-f]{64}$/.test(name)) return '64 hexadecimal digits alone name no image; write REPOSITORY@sha256:DIGITS.';
  return wrongPath(path) ?? (name.length > NAME_MAX ? `It has more than ${NAME_MAX} characters.` : undefined);
}
