import assert from 'node:assert/strict';
import test from 'node:test';
import { fileStem } from '#src/notebook/saved/file-stem.ts';

const STEMS: readonly (readonly [title: string | null, stem: string | undefined])[] = [
  ['Weather', 'Weather'],
  ['Wetter in Köln 2024', 'Wetter in Köln 2024'],
  ['天気', '天気'],
  ['a/b\\c:d*e?f"g<h>i|j', 'a_b_c_d_e_f_g_h_i_j'],
  ['../../etc/passwd', '_.._etc_passwd'],
  ['  spaced \t\r\n out.  ', 'spaced out'],
  ['...', undefined],
  ['con', 'con_'],
  ['LPT1', 'LPT1_'],
  ['a\u0000b\u202ec', 'a b c'],
  ['half \ud800 pair', 'half pair'],
  ['x'.repeat(500), 'x'.repeat(120)],
  ['ä'.repeat(500), 'ä'.repeat(60)],
  [`${'x'.repeat(119)}😀`, 'x'.repeat(119)],
  ['///', undefined],
  ['', undefined],
  [null, undefined],
];

for (const [title, stem] of STEMS) {
  test(`a notebook with the title ${JSON.stringify(title)?.slice(0, 40)} is a file ${stem?.slice(0, 40)}`, () => {
    assert.equal(fileStem(title), stem);
  });
}
