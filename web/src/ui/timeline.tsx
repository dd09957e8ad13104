// SPDX-License-Identifier: Apache-2.0
// A value over time, with deployments and notes marked, and a brush that chooses a range.
import type { Annotation, Deployment } from "../api/answers";
import type { Range } from "../model/time";

export interface TimelineSeries {
    label: string;
    values: (number | null)[]; // one for each bucket
    tone?: "accent" | "grew" | "shrank" | "ghost"; // ghost: dashed, what it was before
}

export interface TimelineProps {
    label: string; // what the picture shows, for who does not see it
    start: number; // Unix ms of the first bucket
    stepMs: number;
    series: TimelineSeries[];
    stacked?: boolean; // areas over each other
    format: (value: number) => string;
    height?: number;
    chosen?: [number, number] | null; // Unix ms: shown as chosen
    onBrush?: (range: Range) => void;
    deployments?: Deployment[];
    annotations?: Annotation[];
    onDeployment?: (deployment: Deployment) => void;
}

export function Timeline(props: TimelineProps) {
    return <div role="img" aria-label={props.label} />;
}
