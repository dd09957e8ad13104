// SPDX-License-Identifier: Apache-2.0
// A server whose requests take no time, but for every tenth: then one function holds up all the others.
//
// usage: node shop.js [REQUESTS]     asks itself so often, and ends
'use strict';
const http = require('http');

function renderInvoice(lines) {
    let text = '';
    for (let line = 0; line < lines; line++)
        text = JSON.stringify({ line, before: text.length });
    return text;
}

let requests = 0;
const server = http.createServer((request, answer) => {
    if (++requests % 10 === 0)
        renderInvoice(250000);
    answer.end('thank you\n');
});

const ask = (port) => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, path: '/', agent: false }, (answer) => answer.resume().on('end', resolve)).on('error', reject);
});

server.listen(0, '127.0.0.1', async () => {
    const port = server.address().port;
    const total = Number(process.argv[2] || 100);
    for (let i = 0; i < total; i++)
        await ask(port);
    console.log(`${requests} requests`);
    server.close();
});
