/**
 * A model file that llama.cpp can load: one layer, a few words, random weights. Its answers are nonsense and never end by
 * themselves.
 */
import { SeededRandom } from '../random.ts';

const WIDTH = 32;
const HEADS = 2;
const FEED_FORWARD = 64;
const CONTEXT = 4_096;
const WORDS = 'a tiny model says words that mean nothing at all and goes on for ever'.split(' ');
const SPECIAL = ['<unk>', '<s>', '</s>'];
/** The tokens for text that is not one of the words. */
const BYTES = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
const TOKENS = [...SPECIAL, ...BYTES, ...WORDS.map((word) => `▁${word}`)];
const KINDS = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;

type Value = readonly [
  kind: 'u32' | 'i32' | 'f32' | 'string',
  value: number | string | readonly (number | string)[],
];
type Shape = readonly [rows: number, columns?: number];

const METADATA: Readonly<Record<string, Value>> = {
  'general.architecture': ['string', 'llama'],
  'general.name': ['string', 'tiny'],
  'llama.context_length': ['u32', CONTEXT],
  'llama.embedding_length': ['u32', WIDTH],
  'llama.block_count': ['u32', 1],
  'llama.feed_forward_length': ['u32', FEED_FORWARD],
  'llama.attention.head_count': ['u32', HEADS],
  'llama.attention.head_count_kv': ['u32', HEADS],
  'llama.attention.layer_norm_rms_epsilon': ['f32', 1e-5],
  'llama.rope.dimension_count': ['u32', WIDTH / HEADS],
  'llama.vocab_size': ['u32', TOKENS.length],
  'tokenizer.ggml.model': ['string', 'llama'],
  'tokenizer.ggml.tokens': ['string', TOKENS],
  'tokenizer.ggml.scores': ['f32', TOKENS.map((_, i) => -i)],
  'tokenizer.ggml.token_type': [
    'i32',
    TOKENS.map((_, i) => {
      if (i === 0) return KINDS.unknown;
      if (i < SPECIAL.length) return KINDS.control;
      return i < SPECIAL.length + BYTES.length ? KINDS.byte : KINDS.normal;
    }),
  ],
  'tokenizer.ggml.bos_token_id': ['u32', 1],
  'tokenizer.ggml.eos_token_id': ['u32', 2],
};

/** `columns` is the length of a row; llama.cpp names it first. */
const TENSORS: Readonly<Record<string, Shape>> = {
  'token_embd.weight': [TOKENS.length, WIDTH],
  'output_norm.weight': [WIDTH],
  'output.weight': [TOKENS.length, WIDTH],
  'blk.0.attn_norm.weight': [WIDTH],
  'blk.0.attn_q.weight': [WIDTH, WIDTH],
  'blk.0.attn_k.weight': [WIDTH, WIDTH],
  'blk.0.attn_v.weight': [WIDTH, WIDTH],
  'blk.0.attn_output.weight': [WIDTH, WIDTH],
  'blk.0.ffn_norm.weight': [WIDTH],
  'blk.0.ffn_gate.weight': [FEED_FORWARD, WIDTH],
  'blk.0.ffn_up.weight': [FEED_FORWARD, WIDTH],
  'blk.0.ffn_down.weight': [WIDTH, FEED_FORWARD],
};

/** Returns the bytes of the file, some hundred kilobytes. */
export function tinyGguf(): Buffer {
  const tensors = Object.entries(TENSORS);
  const parts = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(Object.keys(METADATA).length)];
  for (const [key, value] of Object.entries(METADATA)) parts.push(text(key), ...encoded(value));
  let offset = 0;
  for (const [name, shape] of tensors) {
    const dimensions = [...shape].reverse() as number[];
    parts.push(text(name), u32(dimensions.length), ...dimensions.map(u64), u32(0), u64(offset));
    offset += aligned(sizeOf(shape));
  }
  const head = Buffer.concat(parts);
  const random = new SeededRandom(1);
  const weights = tensors.map(([name, shape]) => padded(weightsOf(name, shape, random)));
  return Buffer.concat([padded(head), ...weights]);
}

function weightsOf(name: string, [rows, columns = 1]: Shape, random: SeededRandom): Buffer {
  const bytes = Buffer.alloc(rows * columns * 4);
  // Rows of tokens that are not words stay zero, so that the model never produces them.
  const first = name === 'output.weight' ? (SPECIAL.length + BYTES.length) * columns : 0;
  const isNorm = name.includes('norm');
  for (let i = first; i < rows * columns; i++) bytes.writeFloatLE(isNorm ? 1 : 4 * random.next() - 2, i * 4);
  return bytes;
}

const ENCODERS = {
  u32: [4, (value: number) => u32(value)],
  i32: [5, (value: number) => u32(value)],
  f32: [6, f32],
  string: [8, text],
} as const;

function encoded([kind, value]: Value): Buffer[] {
  const [type, encode] = ENCODERS[kind] as readonly [number, (value: unknown) => Buffer];
  if (!Array.isArray(value)) return [u32(type), encode(value)];
  return [u32(9), u32(type), u64(value.length), ...value.map(encode)];
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
}

function sizeOf([rows, columns = 1]: Shape): number {
  return rows * columns * 4;
}

function aligned(size: number): number {
  return Math.ceil(size / 32) * 32;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);
}
