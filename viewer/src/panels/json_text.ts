// SPDX-License-Identifier: MIT
// json_text.ts: formats JSON with line breaks and indents. Works on the text, token by token, so that numbers keep all
// their digits and text that is not JSON stays unchanged.

const LONG = 100_000; // characters: longer texts are not indented
const DEEP = 30; // levels: deeper ones are indented no further

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gy;

function tokens(text: string): string[] | null {
  const found: string[] = [];
  const rest = text.trim();
  TOKEN.lastIndex = 0;
  for (let at = 0; at < rest.length; at = TOKEN.lastIndex) {
    while (/\s/.test(rest[at] ?? "")) at++;
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(rest);
    if (!match) return null;
    found.push(match[0]);
  }
  return found;
}

export function prettyJson(text: string): string {
  const all = text.length > LONG ? null : tokens(text);
  if (!all) return text;
  let depth = 0;
  let out = "";
  const line = () => "\n" + "  ".repeat(Math.min(depth, DEEP));
  all.forEach((token, i) => {
    const empty = /^[{[]/.test(all[i - 1] ?? "");
    if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      out += empty ? token : line() + token;
      return;
    }
    if (empty) out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth++;
    else if (token === ",") out += line();
  });
  return out;
}
