// Logging in with a token, where no one-time code came with the address.
import { useEffect, useRef, useState } from 'preact/hooks';
import { errorText, login, loginHint, unreached } from '../lib/api.ts';
import { sentence } from '../lib/format.ts';
import { Button } from './basic.tsx';
import { Brand } from './icons.tsx';

// While it is not known who is there.
export function Reaching() {
  if (!unreached.value) return null;
  return (
    <main class="login">
      <div class="card" role="status">
        <h1>Connecting to Swell …</h1>
        <p class="muted">{unreached.value} The page asks again by itself.</p>
      </div>
    </main>
  );
}

export function Login() {
  const [token, setToken] = useState('');
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async () => {
    if (!token.trim()) return setWrong('Paste a token.');
    setBusy(true);
    try {
      // A kubeconfig that is pasted whole has the token in it.
      await login(/\btoken:\s*["']?([^\s"']+)/.exec(token)?.[1] ?? token.trim());
    } catch (error) {
      setWrong(sentence(errorText(error)));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form
        class="card"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="with-swatch" style={{ gap: '12px' }}>
          <span style={{ width: '40px' }}>
            <Brand />
          </span>
          <h1>Log in to Swell</h1>
        </div>
        {loginHint.value && <p role="status">{loginHint.value}</p>}
        <p class="muted">
          On the machine of the cluster, <code>swell ui</code> opens these pages without a token. Elsewhere, paste the
          token of your user, or your kubeconfig.
        </p>
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            ref={field}
            type="password"
            autoComplete="off"
            value={token}
            aria-invalid={wrong !== ''}
            aria-describedby="token-more"
            onInput={(event) => {
              setToken(event.currentTarget.value);
              setWrong('');
            }}
          />
          <span id="token-more" class={wrong ? 'wrong' : 'help'} role={wrong ? 'alert' : undefined}>
            {wrong || 'An administrator makes one with swell user create NAME.'}
          </span>
        </div>
        <Button type="submit" primary disabled={busy}>
          {busy ? 'Logging in …' : 'Log in'}
        </Button>
      </form>
    </main>
  );
}
