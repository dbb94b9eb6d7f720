// Changes a shared library that refers to functions of a newer glibc, so that it refers to functions that every glibc
// has.
//
// A reference has two parts: the name of the function, and the version of glibc with which it was linked. The version
// is in a table of the needed versions. Both are changed in place. The layout of the tables is that of ELF (System V
// ABI, chapters 4 and 5) with the versions of symbols of the Linux Standard Base (part 1, section 10.7), with 64 bits
// and little-endian.

/** Types of sections: the symbols that the loader resolves, the number of the version of each, and the versions that are needed. */
const [DYNAMIC_SYMBOLS, SYMBOL_VERSIONS, NEEDED_VERSIONS] = [11, 0x6fffffff, 0x6ffffffe];
const SYMBOL_BYTES = 24;
/** The prefix of names that the headers of glibc 2.38 give to functions, such as `__isoc23_strtol` for `strtol`. */
const PREFIX = '__isoc23_';
/** The first version of glibc on x86-64 and on arm64. It has the oldest functions. */
const FIRST_VERSIONS = ['GLIBC_2.2.5', 'GLIBC_2.17'];

/** Returns the changed library. Throws when it needs another function of the glibc `version`, such as `GLIBC_2.38`. */
export function withOlderFunctions(library, version) {
  const bytes = Buffer.from(library);
  const sections = sectionsOf(bytes);
  const [symbols, versions, needed] = [DYNAMIC_SYMBOLS, SYMBOL_VERSIONS, NEEDED_VERSIONS].map((type) =>
    sections.find((section) => section.type === type),
  );
  const names = sections[symbols.link].at;
  const nameAt = (at) => {
    const start = names + bytes.readUInt32LE(at);
    return bytes.toString('latin1', start, bytes.indexOf(0, start));
  };

  const entries = versionEntries(bytes, needed.at);
  const tooNew = entries.find((at) => nameAt(at + 8) === version);
  const first = entries.find((at) => FIRST_VERSIONS.includes(nameAt(at + 8)));
  const number = bytes.readUInt16LE(tooNew + 6);
  for (let index = 0; index * SYMBOL_BYTES < symbols.bytes; index++) {
    if (bytes.readUInt16LE(versions.at + 2 * index) !== number) continue;
    const symbol = symbols.at + SYMBOL_BYTES * index;
    const name = nameAt(symbol);
    if (!name.startsWith(PREFIX)) throw new Error(`${name} of ${version} has no older form`);
    bytes.writeUInt32LE(bytes.readUInt32LE(symbol) + PREFIX.length, symbol); // the older name: without the prefix
  }
  // The entry of the newer version becomes a second entry of the first version. It keeps the number by which the
  // symbols refer to it.
  bytes.copy(bytes, tooNew, first, first + 4); // the hash of the name
  bytes.copy(bytes, tooNew + 8, first + 8, first + 12); // the name
  return bytes;
}

function sectionsOf(bytes) {
  const offset = (at) => Number(bytes.readBigUInt64LE(at));
  const [table, entryBytes, count] = [offset(0x28), bytes.readUInt16LE(0x3a), bytes.readUInt16LE(0x3c)];
  return Array.from({ length: count }, (_, index) => {
    const at = table + index * entryBytes;
    return {
      type: bytes.readUInt32LE(at + 4),
      at: offset(at + 0x18),
      bytes: offset(at + 0x20),
      link: bytes.readUInt32LE(at + 0x28),
    };
  });
}

/** Returns the places of the versions that are needed: a list for each library, all of them linked by offsets, of which 0 is the last. */
function versionEntries(bytes, start) {
  return linked(start, 12).flatMap((library) => linked(library + bytes.readUInt32LE(library + 8), 12));

  function linked(from, nextAt) {
    const places = [from];
    for (let at = from; bytes.readUInt32LE(at + nextAt) !== 0; places.push(at))
      at += bytes.readUInt32LE(at + nextAt);
    return places;
  }
}
