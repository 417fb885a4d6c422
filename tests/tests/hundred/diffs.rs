//! Diffs of code, of many shapes.

use crate::dice::Dice;

/// A language: the end of its files' names, how a function begins and ends, and statements.
const LANGUAGES: &[(&str, &str, &str, &[&str])] = &[
    (
        "py",
        "def NAME(items, limit=10):",
        "",
        &[
            "count = len(items)",
            "if count > limit:\n        return None",
            "return sorted(items)[:limit]",
            "items = [item for item in items if item]",
        ],
    ),
    (
        "js",
        "export function NAME(items, limit = 10) {",
        "}",
        &[
            "const count = items.length;",
            "if (count > limit) { return null; }",
            "return items.slice(0, limit);",
            "console.log(`count: ${count}`);",
        ],
    ),
    (
        "rs",
        "pub fn NAME(items: &[u32], limit: usize) -> Option<u32> {",
        "}",
        &[
            "let count = items.len();",
            "items.iter().take(limit).max().copied()",
            "if count > limit { return None; }",
        ],
    ),
    (
        "go",
        "func NAME(items []int, limit int) error {",
        "}",
        &["count := len(items)", "if count > limit {\n\t\treturn ErrTooMany\n\t}", "return nil"],
    ),
    (
        "c",
        "static int NAME(const int *items, size_t limit)\n {",
        "}",
        &[
            "size_t count = 0;",
            "while (count < limit && items[count] != 0) count++;",
            "return (int) count;",
        ],
    ),
    (
        "sh",
        "NAME() {",
        "}",
        &["local count=$#", "[ \"$count\" -gt 10 ] && return 1", "echo \"$count items\""],
    ),
];
const FUNCTIONS: &[&str] = &[
    "total",
    "with_tax",
    "parseDate",
    "read_all_lines",
    "f",
    "sendMail",
    "_private_helper",
    "applyDiscount2",
    "open_file",
    "isEmpty",
    "mergeSorted",
    "retry",
    "to_utf8",
    "checkLimit",
];
const FOLDERS: &[&str] = &["", "src/", "shop/", "lib/io/", "packages/web-ui/src/", "internal/v2/"];
const FILES: &[&str] =
    &["price", "main", "user-list", "date_utils", "Parser", "http2", "a", "test.helpers"];

/// A diff, always the same for the same number: one file, 1 to 3 functions, 5 to 30 lines.
pub(crate) fn diff(number: usize) -> String {
    let mut dice = Dice::new(2_000 + number);
    let (_, begin, end, statements) = LANGUAGES[number % LANGUAGES.len()];
    let file = file(number);
    let names = functions(number);
    let mut lines = Vec::new();
    if dice.below(2) == 0 {
        lines.push(format!("diff --git a/{file} b/{file}"));
        lines.push(format!(
            "index {:07x}..{:07x} 100644",
            dice.below(1 << 28),
            dice.below(1 << 28)
        ));
    }
    let is_new = dice.below(5) == 0;
    lines.push(if is_new { "--- /dev/null".into() } else { format!("--- a/{file}") });
    lines.push(format!("+++ b/{file}"));
    for name in names {
        let at = 1 + dice.below(300);
        let begin = begin.replace("NAME", name);
        let sign = if is_new { '+' } else { ' ' };
        lines.push(match is_new {
            true => format!("@@ -0,0 +{at},{} @@", statements.len() + 2),
            false => format!("@@ -{at},4 +{at},{} @@", statements.len() + 2),
        });
        lines.push(format!("{sign}{begin}"));
        let count = 1 + dice.below(statements.len());
        for statement in dice.several(statements, count) {
            if !is_new && dice.below(3) == 0 {
                lines.push("-    // TODO: check the limit".into());
            }
            lines.push(format!("+    {}", statement.replace('\n', "\n+")));
        }
        if !end.is_empty() {
            lines.push(format!("{sign}{end}"));
        }
    }
    lines.join("\n") + "\n"
}

/// The file that the diff of that number changes.
pub(crate) fn file(number: usize) -> String {
    let mut dice = Dice::new(3_000 + number);
    let end = LANGUAGES[number % LANGUAGES.len()].0;
    format!("{}{}.{end}", dice.pick(FOLDERS), dice.pick(FILES))
}

/// The functions in the diff of that number.
pub(crate) fn functions(number: usize) -> Vec<&'static str> {
    let mut dice = Dice::new(4_000 + number);
    let count = 1 + dice.below(3);
    dice.several(FUNCTIONS, count)
}
