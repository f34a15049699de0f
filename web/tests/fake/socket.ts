// As much of WebSocket as the pages use: text frames, both ways. For tests.
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const FRAME_MAX = 64 * 1024;

// The head of a frame that is one whole text, RFC 6455.
function headOf(length: number): Buffer {
  if (length < 126) return Buffer.from([0x81, length]);
  if (length < 65536) return Buffer.from([0x81, 126, length >> 8, length & 255]);
  const low = [length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255];
  return Buffer.from([0x81, 127, 0, 0, 0, 0, ...low]);
}

export class TextSocket {
  private rest = Buffer.alloc(0);
  onText: (text: string) => void = () => undefined;
  onClose: () => void = () => undefined;

  constructor(
    request: IncomingMessage,
    private readonly stream: Duplex,
  ) {
    const key = createHash('sha1').update(`${request.headers['sec-websocket-key']}${GUID}`).digest('base64');
    stream.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${key}\r\n\r\n`,
    );
    stream.on('data', (chunk: Buffer) => this.take(chunk));
    stream.on('close', () => this.onClose());
    stream.on('error', () => this.onClose());
  }

  send(text: string): void {
    const body = Buffer.from(text);
    const head = headOf(body.length);
    if (!this.stream.destroyed) this.stream.write(Buffer.concat([head, body]));
  }
  close(): void {
    this.stream.destroy();
  }

  private take(chunk: Buffer): void {
    this.rest = Buffer.concat([this.rest, chunk]);
    for (;;) {
      if (this.rest.length < 6) return;
      const short = (this.rest[1] ?? 0) & 127;
      const at = short === 126 ? 4 : 2;
      const length = short === 126 ? this.rest.readUInt16BE(2) : short;
      if (short === 127 || length > FRAME_MAX) return this.close();
      if (this.rest.length < at + 4 + length) return;
      const mask = this.rest.subarray(at, at + 4);
      const body = Buffer.from(this.rest.subarray(at + 4, at + 4 + length));
      body.forEach((byte, index) => {
        body[index] = byte ^ (mask[index & 3] ?? 0);
      });
      const kind = (this.rest[0] ?? 0) & 15;
      this.rest = this.rest.subarray(at + 4 + length);
      if (kind === 8) return this.close();
      if (kind === 1) this.onText(body.toString());
    }
  }
}
