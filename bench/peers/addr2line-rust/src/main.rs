// SPDX-License-Identifier: Apache-2.0
// addr2line-warm FILE MILLISECONDS < ADDRESSES: look-ups a second of CPU time once all addresses
// were looked up, and frames of a look-up; functions undone as its own program undoes them.
use std::io::Read;

fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn pass(loader: &addr2line::Loader, addresses: &[u64]) -> (u64, usize) {
    let (mut count, mut bytes) = (0, 0);
    for &address in addresses {
        let mut frames = match loader.find_frames(address) {
            Ok(frames) => frames,
            Err(_) => continue,
        };
        while let Ok(Some(frame)) = frames.next() {
            count += 1;
            if let Some(location) = frame.location {
                bytes += location.file.map_or(0, str::len) + location.line.unwrap_or(0) as usize;
            }
            if let Some(function) = frame.function {
                bytes += function.demangle().map_or(0, |name| name.len());
            }
        }
    }
    (count, bytes)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let budget: f64 = arguments[2].parse::<f64>().unwrap() / 1e3;
    let loader = addr2line::Loader::new(&arguments[1]).unwrap();
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let addresses: Vec<u64> = text
        .split_whitespace()
        .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap())
        .collect();
    let mut kept = pass(&loader, &addresses);
    let (start, mut passes) = (cpu_s(), 0.0);
    while cpu_s() - start < budget {
        kept = pass(&loader, &addresses);
        passes += 1.0;
    }
    let spent = cpu_s() - start;
    println!("{:.0} {:.2} {}", passes * addresses.len() as f64 / spent, kept.0 as f64 / addresses.len() as f64, kept.1);
}
