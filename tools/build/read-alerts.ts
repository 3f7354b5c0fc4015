import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';

const RULES = new URL('../../deploy/monitoring/alerts.yaml', import.meta.url);

export type Alert = {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
};

/** A rule that writes a series of its own. */
export type RecordingRule = { record: string; expr: string };

export async function readAlerts(): Promise<Alert[]> {
  return (await readRules()).filter((rule) => 'alert' in rule);
}

export async function readRecordingRules(): Promise<RecordingRule[]> {
  return (await readRules()).filter((rule) => 'record' in rule);
}

async function readRules(): Promise<(Alert | RecordingRule)[]> {
  const { groups } = parse(await readFile(RULES, 'utf8')) as { groups: { rules: (Alert | RecordingRule)[] }[] };
  return groups.flatMap(({ rules }) => rules);
}
