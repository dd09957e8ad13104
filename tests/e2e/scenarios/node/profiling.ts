// SPDX-License-Identifier: Apache-2.0
// profiling.ts, as the guides write it
import * as pprof from 'pprof';
import fs from 'node:fs';
import path from 'node:path';

interface ProfileOptions { intervalMillis?: number; durationMillis?: number; outDir?: string; enabled?: boolean; }

const DEFAULT_INTERVAL = 5 * 60 * 1000; // every 5 min
const DEFAULT_DURATION = 15 * 1000; // 15s sample window

export function startContinuousCPUProfiling(opts: ProfileOptions = {}) {
  if (!opts.enabled) return;
  const interval = opts.intervalMillis ?? DEFAULT_INTERVAL;
  const duration = opts.durationMillis ?? DEFAULT_DURATION;
  const outDir = opts.outDir ?? path.join(process.cwd(), 'profiles');
  fs.mkdirSync(outDir, { recursive: true });

  async function runOnce() {
    try {
      const profile = await pprof.time.profile({
        durationMillis: duration,
        lineNumbers: true,
        sourceMapper: undefined,
      });
      const buf = await pprof.encode(profile);
      const file = path.join(outDir, `cpu-${Date.now()}.pb.gz`);
      fs.writeFileSync(file, buf);
    } catch (err) {
      console.error('CPU profiling failed', err);
    }
  }

  setInterval(runOnce, interval).unref();
  runOnce(); // immediate first capture
}

export function startHeapSampling(opts: ProfileOptions = {}) {
  if (!opts.enabled) return;
  const interval = opts.intervalMillis ?? (10 * 60 * 1000); // 10 min
  const outDir = opts.outDir ?? path.join(process.cwd(), 'profiles');
  fs.mkdirSync(outDir, { recursive: true });

  async function runOnce() {
    try {
      const profile = await pprof.heap.profile();
      const buf = await pprof.encode(profile);
      const file = path.join(outDir, `heap-${Date.now()}.pb.gz`);
      fs.writeFileSync(file, buf);
    } catch (err) {
      console.error('Heap profiling failed', err);
    }
  }

  setInterval(runOnce, interval).unref();
}
