// SPDX-License-Identifier: Apache-2.0
// A service that parses its discount rules again for every order, profiled by profiling.ts; it ends when both files are there.
import * as pprof from 'pprof';
import fs from 'node:fs';
import { startContinuousCPUProfiling, startHeapSampling } from './profiling';

const rules = JSON.stringify(Array.from({ length: 2000 }, (_, i) => ({ sku: 'sku-' + i, percent: i % 40 })));
const orders: unknown[] = [];

function applyDiscounts(sku: number) {
  const all = JSON.parse(rules) as { sku: string; percent: number }[];
  return all[sku % all.length].percent;
}

function checkout(sku: number) {
  orders.push({ sku, percent: applyDiscounts(sku), note: 'order '.repeat(20) });
  if (orders.length > 20000) orders.length = 0;
}

pprof.heap.start(64 * 1024, 64);
startContinuousCPUProfiling({ enabled: process.env.ENABLE_PROFILING === '1', durationMillis: 3000 });
startHeapSampling({ enabled: process.env.ENABLE_PROFILING === '1', intervalMillis: 2000 });

function serve(round: number) {
  for (let i = 0; i < 20; i++) checkout(round + i);
  const files = fs.existsSync('profiles') ? fs.readdirSync('profiles') : [];
  const there = (kind: string) => files.some((name) => name.startsWith(kind));
  if (round < 1e7 && !(there('cpu-') && there('heap-'))) setImmediate(serve, round + 20);
  else process.exit(0);
}
serve(0);
