// SPDX-License-Identifier: MIT
// vite.config.ts: builds the page into one HTML file, dist/index.html, with script and style inside and a
// Content-Security-Policy that allows only these (by their hashes); kymo view sends the same in a header. The same sources give the same bytes.
//
// `npm run dev` serves the sources and forwards their requests to a running kymo view:
//   KYMO_VIEW=http://127.0.0.1:1234/TOKEN/ npm run dev
import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

const csp = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src 'sha256-${script}'`,
    `style-src 'sha256-${style}'`,
    "connect-src 'self'",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");

// An HTML parser ends a script at the first "</script", even inside a string.
const inScript = (code: string): string => code.trim().replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");

function page(html: string, code: string, style: string): string {
  const script = `\n${inScript(code)}\n`;
  const styles = `\n${style.trim()}\n`;
  const hash = (text: string): string => createHash("sha256").update(text).digest("base64");
  const meta = `<meta http-equiv="Content-Security-Policy" content="${csp(hash(script), hash(styles))}">`;
  return html
    .replace(/\s*<script type="module"[^>]*><\/script>/g, "")
    .replace(/\s*<link rel="(stylesheet|modulepreload)"[^>]*>/g, "")
    .replace("<!-- kymo-csp -->", () => meta)
    .replace("</head>", () => `<style>${styles}</style>\n</head>`)
    .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
}

function oneFile(): Plugin {
  return {
    name: "kymo-one-file",
    apply: "build",
    enforce: "post",
    generateBundle(_options, bundle) {
      let code = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") code += part.code;
        else if (name.endsWith(".css")) style += part.source;
        else continue;
        delete bundle[name];
      }
      const html = bundle["index.html"];
      if (html?.type !== "asset") throw new Error("vite made no index.html");
      html.source = page(String(html.source), code, style);
    },
  };
}

const server = new URL(process.env.KYMO_VIEW ?? "http://127.0.0.1:9100/token/");

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: {
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    assetsInlineLimit: 1 << 20,
    rollupOptions: { output: { codeSplitting: false } },
  },
  server: {
    proxy: {
      "/api": {
        target: server.origin,
        changeOrigin: true,
        rewrite: (path) => server.pathname.replace(/\/$/, "") + path,
        headers: { origin: server.origin },
      },
    },
  },
});
