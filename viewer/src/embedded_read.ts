// SPDX-License-Identifier: MIT
// embedded_read.ts: unpacks the data of an exported page from base64 and gzip: JSON, then columns of numbers
// (docs/formats/html.md). Decodes each piece as it comes out of gzip, never the whole, and lets the page draw between
// pieces.
import type { Trace } from "./protocol";

export type Column = Float64Array | Uint32Array | Uint16Array | Uint8Array | BigUint64Array;
export type Progress = (stage: string, done: number, all: number) => void;

export interface Head {
  range: { from: number | null; to: number | null } | null;
  first: number; // rows of the whole trace from here on follow those in slices.listed
  wall: [from: string, offset: string][];
  columns: [name: string, packing: string, count: number][];
  trace: Trace;
}

export interface Unpacked {
  head: Head;
  columns: Map<string, Column>;
}

const PIECE = 1 << 18; // characters of base64; a multiple of 4
const NUMBER_BYTES = 10;
const ROWS_MAX = 0xffffffff;
const BROKEN = "The trace in this page is damaged: export it again with kymo view --export.";
const TOO_OLD = "This browser cannot unpack the trace in this page: use a browser from 2023 or later.";
const TOO_LARGE = "The trace in this page is too large for this browser: export a part of it with --from and --to.";

// Lets the page draw and handle input once work has taken this many milliseconds.
export class Pacer {
  private since = performance.now();

  constructor(private readonly ms = 12) {}

  async pause(): Promise<void> {
    if (performance.now() - this.since < this.ms) return;
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.since = performance.now();
  }
}

function digits(): Uint8Array {
  const table = new Uint8Array(128).fill(255);
  const text = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let i = 0; i < text.length; i++) table[text.charCodeAt(i)] = i;
  return table;
}

const DIGITS = digits();

// Returns the bytes of text[from, to), a multiple of four characters.
function fromBase64(text: string, from: number, to: number): Uint8Array<ArrayBuffer> {
  const padding = text.endsWith("==", to) ? 2 : text.endsWith("=", to) ? 1 : 0;
  const bytes = new Uint8Array(((to - from) / 4) * 3);
  for (let i = from, at = 0; i < to; i += 4, at += 3) {
    const a = DIGITS[text.charCodeAt(i)];
    const b = DIGITS[text.charCodeAt(i + 1)];
    const c = DIGITS[text.charCodeAt(i + 2)];
    const d = DIGITS[text.charCodeAt(i + 3)];
    bytes[at] = (a << 2) | (b >> 4);
    bytes[at + 1] = (b << 4) | ((c & 63) >> 2);
    bytes[at + 2] = (c << 6) | (d & 63);
  }
  return bytes.subarray(0, bytes.length - padding);
}

function unpacked(text: string, progress: Progress): ReadableStream<Uint8Array> {
  let at = 0;
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const end = Math.min(at + PIECE, text.length);
      if (at < end) controller.enqueue(fromBase64(text, at, end));
      else controller.close();
      at = end;
      progress("Unpacking the trace", at, text.length);
    },
  });
  return source.pipeThrough(new DecompressionStream("gzip"));
}

// Bytes as they arrive. need() keeps the longest possible number contiguous.
class Bytes {
  buffer = new Uint8Array(0);
  at = 0;
  end = 0;
  private ended = false;
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.reader = stream.getReader();
  }

  // Returns false if fewer are left.
  async need(count: number): Promise<boolean> {
    const more: Uint8Array[] = [];
    let have = this.end - this.at;
    while (have < count && !this.ended) {
      const { value, done } = await this.reader.read().catch((cause: unknown) => {
        throw new Error(BROKEN, { cause });
      });
      if (done) this.ended = true;
      else more.push(value);
      have += value?.length ?? 0;
    }
    if (more.length) this.join(more, have);
    return have >= count;
  }

  private join(more: Uint8Array[], bytes: number): void {
    const joined = new Uint8Array(bytes);
    joined.set(this.buffer.subarray(this.at, this.end));
    let at = this.end - this.at;
    for (const piece of more) {
      joined.set(piece, at);
      at += piece.length;
    }
    this.buffer = joined;
    this.at = 0;
    this.end = bytes;
  }

  async cancel(): Promise<void> {
    await this.reader.cancel().catch(() => undefined);
  }

  // Returns a number of 7 bits per byte; exact up to 2^53.
  number(): number {
    const buffer = this.buffer;
    let byte = buffer[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let unit = 128;
    do {
      byte = this.at < this.end ? buffer[this.at] : 0;
      this.at++;
      value += (byte & 127) * unit;
      unit *= 128;
    } while (byte >= 128);
    return value;
  }

  // Returns a number with all 64 bits.
  big(): bigint {
    const from = this.at;
    const value = this.number();
    if (this.at - from <= 7) return BigInt(value);
    let big = 0n;
    for (let i = Math.min(this.at, this.end) - 1; i >= from; i--) big = (big << 7n) | BigInt(this.buffer[i] & 127);
    return BigInt.asUintN(64, big);
  }
}

const unzigzag = (value: number): number => (value % 2 ? -(value + 1) / 2 : value / 2);

function columnFor(packing: string, count: number): Column {
  switch (packing) {
    case "b":
      return new Uint8Array(count);
    case "w":
      return new Uint16Array(count);
    case "u":
    case "s":
    case "d":
      return new Uint32Array(count);
    case "x":
      return new BigUint64Array(count);
    case "t":
    case "i":
    case "l":
    case "f":
      return new Float64Array(count);
    default:
      throw new Error("The trace in this page was written by a newer version of kymo than the page.");
  }
}

// Decodes numbers from index i on while whole ones are sure to be there; returns the index of the first one left.
type Take = (bytes: Bytes, i: number, limit: number) => number;

function numbers(to: Float64Array | Uint32Array | Uint16Array, decode: (value: number) => number): Take {
  return (bytes, i, limit) => {
    for (; i < to.length && bytes.at <= limit; i++) to[i] = decode(bytes.number());
    return i;
  };
}

function nearNumbers(to: Uint32Array): Take {
  let before = 0;
  return numbers(to, (value) => (value ? (before += unzigzag(value - 1)) : 0));
}

function times(to: Float64Array): Take {
  let before = 0;
  return numbers(to, (value) => (before += unzigzag(value)));
}

function bigNumbers(to: BigUint64Array): Take {
  return (bytes, i, limit) => {
    for (; i < to.length && bytes.at <= limit; i++) to[i] = bytes.big();
    return i;
  };
}

function doubles(to: Float64Array): Take {
  return (bytes, i, limit) => {
    const view = new DataView(bytes.buffer.buffer, bytes.buffer.byteOffset, bytes.buffer.byteLength);
    for (; i < to.length && bytes.at <= limit; i++, bytes.at += 8) to[i] = view.getFloat64(bytes.at, true);
    return i;
  };
}

function takeFor(packing: string, to: Column): Take {
  if (to instanceof BigUint64Array) return bigNumbers(to);
  if (packing === "f") return doubles(to as Float64Array);
  if (packing === "t") return times(to as Float64Array);
  if (packing === "d") return nearNumbers(to as Uint32Array);
  return numbers(to as Float64Array, packing === "i" ? unzigzag : (value) => value);
}

async function readBytes(bytes: Bytes, to: Uint8Array, pacer: Pacer): Promise<void> {
  for (let i = 0; i < to.length; ) {
    if (!(await bytes.need(1))) throw new Error(BROKEN);
    const now = Math.min(to.length - i, bytes.end - bytes.at);
    to.set(bytes.buffer.subarray(bytes.at, bytes.at + now), i);
    bytes.at += now;
    i += now;
    await pacer.pause();
  }
}

async function readNumbers(bytes: Bytes, packing: string, to: Column, pacer: Pacer): Promise<void> {
  const take = takeFor(packing, to);
  const bytesMin = packing === "f" ? 8 : NUMBER_BYTES;
  for (let i = 0; i < to.length; ) {
    const plenty = await bytes.need(bytesMin);
    // At the very end a number may be shorter than the longest one.
    const limit = plenty ? bytes.end - bytesMin : packing === "f" ? -1 : bytes.end - 1;
    const after = take(bytes, i, limit);
    if (after === i || bytes.at > bytes.end) throw new Error(BROKEN);
    i = after;
    await pacer.pause();
  }
}

async function readColumn(bytes: Bytes, packing: string, count: number, pacer: Pacer): Promise<Column> {
  if (!Number.isInteger(count) || count < 0 || count > ROWS_MAX) throw new Error(BROKEN);
  const column = columnFor(packing, count);
  if (column instanceof Uint8Array) await readBytes(bytes, column, pacer);
  else await readNumbers(bytes, packing, column, pacer);
  return column;
}

async function readHead(bytes: Bytes): Promise<Head> {
  if (!(await bytes.need(8))) throw new Error(BROKEN);
  const view = new DataView(bytes.buffer.buffer, bytes.buffer.byteOffset + bytes.at, 8);
  if (view.getUint32(0, true) !== 0x3148594b) throw new Error(BROKEN);
  const size = view.getUint32(4, true);
  if (!(await bytes.need(8 + size))) throw new Error(BROKEN);
  const json = bytes.buffer.subarray(bytes.at + 8, bytes.at + 8 + size);
  bytes.at += 8 + size;
  return JSON.parse(new TextDecoder().decode(json)) as Head;
}

async function readAll(bytes: Bytes, pacer: Pacer): Promise<Unpacked> {
  const columns = new Map<string, Column>();
  const head = await readHead(bytes);
  for (const [name, packing, count] of head.columns)
    columns.set(name, await readColumn(bytes, packing, count, pacer));
  // Reading to the end makes gzip check its checksum.
  if (await bytes.need(1)) throw new Error(BROKEN);
  return { head, columns };
}

// Explains what browsers throw.
function explained(error: unknown): unknown {
  if (error instanceof RangeError) return new Error(TOO_LARGE, { cause: error });
  if (error instanceof TypeError || error instanceof SyntaxError) return new Error(BROKEN, { cause: error });
  return error;
}

export async function readEmbedded(text: string, pacer: Pacer, progress: Progress): Promise<Unpacked> {
  if (!("DecompressionStream" in globalThis)) throw new Error(TOO_OLD);
  const bytes = new Bytes(unpacked(text.trim(), progress));
  try {
    return await readAll(bytes, pacer);
  } catch (error) {
    throw explained(error);
  } finally {
    await bytes.cancel();
  }
}
