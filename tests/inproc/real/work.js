// SPDX-License-Identifier: Apache-2.0
// What Node does for a living: promises, timers, files, a server and its client, workers, children, hashes, streams.
// Prints the same each time.
'use strict';
const assert = require('assert');
const { execFileSync } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort } = require('worker_threads');

const fibonacci = (n) => (n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2));

async function files() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'kiln-work-'));
    const names = Array.from({ length: 50 }, (_, i) => path.join(folder, `file-${i}`));
    await Promise.all(names.map((name, i) => fs.promises.writeFile(name, 'x'.repeat(i * 1000))));
    const sizes = await Promise.all(names.map(async (name) => (await fs.promises.readFile(name)).length));
    fs.rmSync(folder, { recursive: true });
    return sizes.reduce((a, b) => a + b);
}

async function server() {
    const listener = http.createServer((request, answer) => answer.end(request.url.repeat(100)));
    await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const agent = new http.Agent({ keepAlive: true });
    let bytes = 0;
    for (let i = 0; i < 100; i++)
        bytes += await new Promise((resolve, reject) =>
            http.get({ agent, host: '127.0.0.1', port: listener.address().port, path: `/${i}` }, (answer) => {
                let n = 0;
                answer.on('data', (chunk) => (n += chunk.length)).on('end', () => resolve(n));
            }).on('error', reject));
    agent.destroy();
    listener.close();
    return bytes;
}

const worker = () => new Promise((resolve, reject) => {
    new Worker(__filename).on('message', resolve).on('error', reject);
});

async function main() {
    console.log('fibonacci', fibonacci(25));
    const text = JSON.stringify(Array.from({ length: 20000 }, (_, i) => ({ i, name: `n${i}`, list: [i, i * 2] })));
    console.log('json', JSON.parse(text).reduce((sum, row) => sum + row.list[1], 0));
    console.log('sha', crypto.createHash('sha256').update(text).digest('hex'));
    console.log('pbkdf2', crypto.pbkdf2Sync('p', 's', 2000, 32, 'sha512').toString('hex'));
    const packed = zlib.gzipSync(text);
    assert.strictEqual(zlib.gunzipSync(packed).toString(), text);
    console.log('files', await files());
    console.log('server', await server());
    console.log('workers', (await Promise.all([worker(), worker(), worker()])).join());
    console.log('child', execFileSync(process.execPath, ['-p', '6 * 7'], { encoding: 'utf8' }).trim());
    const order = [];
    await new Promise((resolve) => {
        setTimeout(() => { order.push('timeout'); resolve(); }, 5);
        setImmediate(() => order.push('immediate'));
        process.nextTick(() => order.push('tick'));
        Promise.resolve().then(() => order.push('promise'));
    });
    console.log('order', order.join());
    process.exitCode = 3;
}

if (isMainThread)
    main();
else
    parentPort.postMessage(fibonacci(20));
