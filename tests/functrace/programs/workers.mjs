// SPDX-License-Identifier: MIT
// workers.mjs [until]: node with worker threads that compute, throw, wait, compress and talk to each other. Prints one digest;
// with "until": the same again and again until the standard input ends, exit 1 when a round had another one.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { deflateSync, inflateSync } from "node:zlib";

const self = fileURLToPath(import.meta.url);

function fail_deep(depth) {
    if (depth === 0) throw new RangeError("deep");
    return fail_deep(depth - 1) + 1;
}

function* numbers(count) {
    for (let i = 0; i < count; i++) yield (i * 2654435761) >>> 0;
}

async function work(seed) {
    const hash = createHash("sha256");
    let caught = 0;
    for (let i = 0; i < 300; i++) {
        try {
            fail_deep(i % 40);
        } catch (error) {
            caught += error.message.length;
        }
        await null;
    }
    const sorted = [...numbers(5000)].map((n) => n ^ seed).sort((a, b) => a - b);
    const text = JSON.stringify({ seed, caught, sorted });
    hash.update(inflateSync(deflateSync(Buffer.from(text))));
    hash.update(String(text.match(/(\d)(\d)\2\1/g)?.length));
    return hash.digest("hex");
}

function from_worker(seed) {
    return new Promise((resolve, reject) => {
        const worker = new Worker(self, { workerData: seed });
        worker.once("message", resolve);
        worker.once("error", reject);
    });
}

async function round() {
    const parts = await Promise.all([1, 2, 3].map(from_worker));
    parts.push(await work(4));
    return createHash("sha256").update(parts.join()).digest("hex");
}

if (!isMainThread) {
    parentPort.postMessage(await work(workerData));
} else if (process.argv[2] === "until") {
    let ended = false;
    process.stdin.on("end", () => (ended = true)).resume();
    const first = await round();
    console.log("ready");
    while (!ended)
        if ((await round()) !== first) {
            console.error("wrong: a round came out otherwise");
            process.exit(1);
        }
} else {
    console.log(await round(), readFileSync(self).length);
}
