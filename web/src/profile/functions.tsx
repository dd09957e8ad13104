// SPDX-License-Identifier: Apache-2.0
// The table of functions.  Only the rows in sight are elements, so that thousands cost nothing.
import { useMemo } from "preact/hooks";
import { readInks } from "../flame/inks";
import { shortName, unitOf } from "../model/family";
import { count, share } from "../model/format";
import { familyFill } from "../model/palette";
import { MenuButton } from "../ui/menu";
import { RowTable } from "../ui/rows";
import { useTheme } from "../ui/theme";
import { familyOfRow, type Row, type Rows } from "./rows";
import { setLook, type Look, type Sort } from "./state";

function Heading({ title, by, sort }: { title: string; by: Sort; sort: Sort }) {
    const chosen = sort === by;
    return (
        <th scope="col" class={by === "name" ? "" : "number"} aria-sort={chosen ? (by === "name" ? "ascending" : "descending") : undefined}>
            <button type="button" title={`Sort by ${title.toLowerCase()}`} onClick={() => setLook({ sort: by }, true)}>
                {title}
                {chosen && (by === "name" ? " ↑" : " ↓")}
            </button>
        </th>
    );
}

export interface FunctionsProps {
    rows: Rows;
    look: Look;
    pinned: ReadonlySet<string>;
    partly: string; // of what the rows are, where they are not of the whole profile
    onSelect: (name: string) => void;
    onOpen: (name: string) => void;
    grouped: boolean;
}

function functionRow({ row, whole, most, color, chosen, props }: { row: Row; whole: number; most: number; color: string; chosen: boolean; props: FunctionsProps }) {
    return (
        <tr
            class="choosable"
            aria-selected={chosen}
            title={[row.name, row.file || row.module].filter(Boolean).join("\n")}
            onClick={() => props.onSelect(row.name)}
            onDblClick={() => props.onOpen(row.name)}
        >
            <td>
                <button type="button" class="fn-name" tabIndex={-1}>
                    <i class="swatch" style={{ background: color }} />
                    {shortName(row.name)}
                </button>
            </td>
            <td class="number bar">
                <i style={{ width: `${(row.self / most) * 72}px` }} />
                <span>{share(row.self, whole)}</span>
            </td>
            <td class="number">{share(row.total, whole)}</td>
        </tr>
    );
}

function Head({ rows, look, partly, grouped }: FunctionsProps) {
    const narrowed = rows.rows.length < rows.all && (look.own || look.find);
    return (
        <div class="panel-head">
            <h2>{grouped ? "Groups" : "Functions"}</h2>
            <span class="muted nowrap">
                {narrowed ? `${count(rows.rows.length)} of ` : ""}
                {count(rows.all)}
            </span>
            {partly && <span class="muted ellipsis small">{partly}</span>}
            <span class="grow" />
            <MenuButton
                label="Whose code is listed"
                class="ghost"
                alignRight
                text={look.own ? "Only own code" : "All code"}
                entries={[
                    { label: "All code", chosen: !look.own, onChoose: () => setLook({ own: false }) },
                    { label: "Only own code", chosen: look.own, onChoose: () => setLook({ own: true }) },
                ]}
            />
        </div>
    );
}

export function Functions(props: FunctionsProps) {
    const { rows, look, pinned } = props;
    const theme = useTheme();
    const inks = useMemo(readInks, [theme]);
    const n = rows.rows.length;
    const most = Math.max(1, look.sort === "self" ? (rows.rows[0]?.self ?? 1) : rows.rows.reduce((top, row) => Math.max(top, row.self), 0));
    const at = useMemo(() => rows.rows.findIndex((row) => row.name === look.fn), [rows, look.fn]);
    const colorOf = (row: Row) => familyFill(familyOfRow(row, pinned), row.mark?.unit ?? unitOf(row), inks);

    const onKey = (event: KeyboardEvent) => {
        const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: n - 1 }[event.key];
        if (to !== undefined && n) {
            event.preventDefault();
            props.onSelect(rows.rows[Math.max(0, Math.min(n - 1, to))].name);
        } else if (event.key === "Enter" && at >= 0) {
            event.preventDefault();
            props.onOpen(look.fn);
        }
    };
    return (
        <section class="panel profile-side" aria-label="Functions">
            <Head {...props} />
            <RowTable
                label="Functions; arrows walk, Enter shows callers and callees"
                n={n}
                height={32}
                at={at}
                onKey={onKey}
                cols={<colgroup><col /><col class="figure" /><col class="figure" /></colgroup>}
                head={
                    <tr>
                        <Heading title={props.grouped ? "Group" : "Function"} by="name" sort={look.sort} />
                        <Heading title="Self" by="self" sort={look.sort} />
                        <Heading title="Total" by="total" sort={look.sort} />
                    </tr>
                }
                row={(i) => {
                    const row = rows.rows[i];
                    return functionRow({ row, whole: rows.whole, most, color: colorOf(row), chosen: row.name === look.fn, props });
                }}
            >
                {n === 0 && <p class="none">{look.find ? "No function has that in its name." : look.own ? "None of it is known as own code. Right-click a frame to pin its module." : "No functions."}</p>}
                {rows.cut && <p class="none">The table has the {count(rows.rows.length)} largest of {count(rows.all)} functions.</p>}
            </RowTable>
        </section>
    );
}
