use proptest::prelude::*;

use super::*;

const FUEL: u64 = 4_000_000;

fn calendar(format: &str) -> Result<String, String> {
    match format {
        "%Y-%m-%d" => Ok("2025-07-04".into()),
        "%d %b %Y" => Ok("04 Jul 2025".into()),
        other => Err(format!("no {other}")),
    }
}

fn rendered(source: &str, variables: Vec<(&str, Value)>) -> Result<Text, Error> {
    Template::parse(source)?.render(variables, &Fuel::new(FUEL), &calendar)
}

fn plain(source: &str) -> Result<String, Error> {
    rendered(source, Vec::new()).map(|text| text.as_str().to_owned())
}

#[test]
fn templates_give_what_python_gives() {
    let recorded = include_str!("../tests/recorded/python.json");
    let cases: Vec<serde_json::Value> = serde_json::from_str(recorded).unwrap();
    assert!(cases.len() > 150);
    for case in cases {
        let source = case["template"].as_str().unwrap();
        match (plain(source), case["output"].as_str()) {
            (Ok(own), Some(expected)) => assert_eq!(own, expected, "{source}"),
            (Err(_), None) => {}
            (own, expected) => panic!("{source}\n{own:?}\n{expected:?}"),
        }
    }
}

/// The text of each origin in order, the template's in brackets.
fn with_origins(text: &Text) -> String {
    text.runs()
        .map(|(range, origin)| match origin {
            None => format!("[{}]", &text.as_str()[range]),
            Some(origin) => format!("{origin}{{{}}}", &text.as_str()[range]),
        })
        .collect()
}

#[test]
fn whatever_a_template_does_to_content_its_origin_stays() {
    for (expression, expected) in [
        ("a", "1{ Ab</t>cD }2{x\n}"),
        ("a | trim", "1{Ab</t>cD }2{x}"),
        ("a.split('</t>')[-1].lstrip()", "1{cD }2{x\n}"),
        ("a.replace('</t>', '!') | upper", "1{ AB}[!]1{CD }2{X\n}"),
        ("a[1:3] ~ a[-2]", "1{Ab}2{x}"),
        ("a | tojson", "[\"]1{ Ab</t>cD }2{x\\n}[\"]"),
        ("[a[:2]]", "[[']1{ A}[']]"),
        ("{a[:2]: 1}", "[{']1{ A}[': 1}]"),
        ("'%5s|' % a[1:2]", "[    ]1{A}[|]"),
        ("'<{}>'.format(a[1])", "[<]1{A}[>]"),
        ("a[1] * 2 + '-' + a[1]", "1{AA}[-]1{A}"),
        ("a.center(12, '*') | length", "[12]"),
        ("a[1].rjust(3, a[2])", "1{bbA}"),
        ("a | list | join('-') | replace('-', '')", "1{ Ab</t>cD }2{x\n}"),
        ("a.splitlines()[0] | title", "1{ Ab</t>cd }2{X}"),
        ("{'k': a[1]}.values() | map('lower') | first", "1{a}"),
        ("a | indent(1, true)", "[ ]1{ Ab</t>cD }2{x\n}"),
        ("a[1].format()", "1{A}"),
        ("(a[1] ~ '%s') % 1", "1{A}[1]"),
        ("a | reverse", "2{\nx}1{ Dc>t/<bA }"),
        ("a | e", "1{ Ab&lt;/t&gt;cD }2{x\n}"),
    ] {
        let mut content = Text::from_origin(" Ab</t>cD ", Some(1));
        content.push("x\n", Some(2));
        let value = Value::Text(std::rc::Rc::new(content));
        let text = rendered(&format!("{{{{ {expression} }}}}"), vec![("a", value)]);
        assert_eq!(with_origins(&text.unwrap()), expected, "{expression}");
    }
}

#[test]
fn macros_and_blocks_keep_origins() {
    let source = "{% macro m(x) %}<{{ x }}>{% endmacro %}{% set y %}{{ m(a) }}{% endset %}\
        {% set ns = namespace(s='') %}{% for c in y %}{% set ns.s = ns.s ~ c %}{% endfor %}{{ ns.s }}";
    let text = rendered(source, vec![("a", Value::text("b", Some(7)))]).unwrap();
    assert_eq!(with_origins(&text), "[<]7{b}[>]");
}

#[test]
fn failures_say_what_and_where() {
    for (source, kind, message) in [
        ("a\n{{ raise_exception('only ' ~ 1) }}", ErrorKind::Refused, "only 1 (line 2)"),
        ("{{ x.y }}", ErrorKind::Failed, "`y` of something undefined (line 1)"),
        (
            "\n{% if 1 %}",
            ErrorKind::Syntax,
            "the end of the template where `endif` belongs (line 2)",
        ),
        ("{{ 1 + }}", ErrorKind::Syntax, "the end of the tag where a value belongs (line 1)"),
        ("{% include 'x' %}", ErrorKind::Syntax, "`include` is no statement here (line 1)"),
        ("{{ range(100001) }}", ErrorKind::Limit, "a range of 100001 numbers (line 1)"),
    ] {
        let error = plain(source).unwrap_err();
        assert_eq!((error.kind, &*error.to_string()), (kind, message), "{source}");
    }
}

#[test]
fn a_source_that_nests_too_deeply_is_refused() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{'a':", "}"),
        ("-", ""),
        ("not ", ""),
        ("a[", "]"),
        ("f(", ")"),
        ("1 if ", ""),
        ("1 if 1 else ", ""),
        ("a|f(", ")"),
        ("a is b(", ")"),
    ] {
        for count in [20_000, 150] {
            let source = format!("{{{{ {}1{} }}}}", open.repeat(count), close.repeat(count));
            assert!(Template::parse(&source).is_err(), "{open}");
        }
    }
    for open in ["{% if 1 %}", "{% for a in b %}", "{% macro m() %}", "{% set a %}", "{% set ((("] {
        assert!(Template::parse(&open.repeat(10_000)).is_err(), "{open}");
        assert!(Template::parse(&open.repeat(150)).is_err(), "{open}");
    }
    let too_long = " ".repeat(LONGEST + 1);
    assert!(Template::parse(&too_long).is_err());
}

#[test]
fn long_chains_are_read_and_run() {
    for (first, more, last) in [
        ("{{ 1", "+1", " }}"),
        ("{{ 1", "|abs", " }}"),
        ("{{ 'a'", "~1", " }}"),
        ("{{ 1", " and 1", " }}"),
        ("{{ 1", " == 1", " }}"),
        ("{{ x", " is defined", " }}"),
        ("{{ 'a'", ".strip()", " }}"),
        ("{{ [1", ",1", "] }}"),
        ("{% if 0 %}", "{% elif 0 %}", "{% endif %}"),
        ("", "{# #}", ""),
    ] {
        let source = format!("{first}{}{last}", more.repeat(10_000));
        let result = plain(&source);
        assert!(result.is_ok() || result.is_err_and(|error| error.kind == ErrorKind::Limit));
    }
}

/// What takes too much, in time, memory or stack.
pub(crate) const BOMBS: &[&str] = &[
    "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "{% set ns = namespace(x={}) %}{% for i in range(100000) %}{% set ns.x = {'a': ns.x} %}{% endfor %}",
    "{{ 'x' * 1000000000 }}",
    "{{ ('x' * 1000000) * 1000000 }}",
    "{{ [1] * 1000000000 }}",
    "{{ range(10 ** 9) }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}",
    "{% for a in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "{{ ('a' * 100000) | replace('', 'b' * 100000) }}",
    "{{ ('a' * 100000) | list | join('b' * 100000) }}",
    "{{ 'a'.center(10 ** 12) }}{{ 'a'.ljust(10 ** 12) }}",
    "{{ 'a' | center(10 ** 12) }}",
    "{{ 'a' | indent(10 ** 12) }}",
    "{{ ('\n' * 100000) | indent(100000, blank=true) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '%.1000000000f' % 1 }}",
    "{{ [1, 2] | tojson(indent=10 ** 12) }}",
    "{{ range(100000) | batch(10 ** 15, 0) | list }}",
    "{{ range(100000) | map('string') | map('center', 1000000) | list }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(x) %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
    "{% set ns = namespace(f=none) %}{% macro make(f) %}{% macro g() %}{{ f }}{% endmacro %}{% set ns.f = g %}{% endmacro %}{% for i in range(100000) %}{{ make(ns.f) }}{% endfor %}",
    "{% set ns = namespace(x=none) %}{% for i in range(100000) %}{% set ns.x = namespace(x=ns.x) %}{% endfor %}",
    "{% set ns = namespace() %}{% set ns.x = ns %}{% macro m() %}{{ ns }}{% endmacro %}{% set ns.m = m %}{% for i in range(100000) %}{{ ns.x.x.x.x.x }}{% endfor %}{{ 1 / 0 }}",
    "{% set ns = namespace(f='') %}{% for i in range(100000) %}{% set ns.f = ns.f.strip %}{% set ns.f = [ns.f] %}{% endfor %}",
    "{% for i in range(100000) %}{% for c in 'x' * 10000 %}{% endfor %}{% endfor %}",
    "{% for i in range(100000) %}{{ ('x' * 10000) in ('y' * 10000) }}{% endfor %}",
    "{% for i in range(100000) %}{{ range(100000) | sort | length }}{% endfor %}",
    "{{ range(100000) | unique | list | length }}",
    "{% set x = range(100000) | list %}{% for i in range(100000) %}{{ -1 in x }}{% endfor %}",
    "{% set s = 'x ' * 100000 %}{% for i in range(100000) %}{{ s.split() | length }}{{ s.splitlines() | length }}{{ s | wordcount }}{{ s | length }}{% endfor %}",
    "{% set s = 'ß' * 100000 %}{% for i in range(100000) %}{{ s.upper() | length }}{% endfor %}",
    "{% set s = 'x' * 100000 %}{% for i in range(100000) %}{{ s.strip('y' * 100000) | length }}{% endfor %}",
    "{{ dict(range(100000) | map('string') | batch(2)) }}{% set ns = namespace() %}{% for i in range(100000) %}{{ namespace(**{'a': 1}) }}{% endfor %}{{ 1 / 0 }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ (1.5 ** 1000000) }}{{ 0 / 0 }}",
    "{{ raise_exception('x' * 1000000000) }}",
    "{{ strftime_now('%Y' * 1000000000) }}",
];

#[test]
fn bombs_end_in_an_error() {
    for bomb in BOMBS {
        assert!(plain(bomb).is_err(), "{bomb}");
    }
}

#[test]
fn the_deepest_nesting_that_is_read_runs_in_a_small_stack() {
    let deep = [
        format!("{{{{ {}1{} }}}}", "(".repeat(45), ")".repeat(45)),
        format!("{{{{ {}1 }}}}", "not ".repeat(90)),
        format!("{}x{}", "{% if 1 %}".repeat(90), "{% endif %}".repeat(90)),
        format!("{}x{}", "{% for a in [1] %}".repeat(90), "{% endfor %}".repeat(90)),
        "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(20) }}{{ f(1000) }}".into(),
        "{% set ns = namespace(x=[1]) %}{% for i in range(50) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}{{ ns.x | tojson }}{{ ns.x == ns.x }}".into(),
    ];
    let run = move || {
        for source in deep {
            match plain(&source) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.kind, ErrorKind::Limit, "{error} {source}"),
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

fn any_source() -> impl Strategy<Value = String> {
    let words = [
        "{{",
        "}}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "+",
        "if",
        "else",
        "endif",
        "for",
        "in",
        "endfor",
        "x",
        "set",
        "=",
        "macro",
        "endmacro",
        "m",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "|",
        ".",
        "'a'",
        "\"",
        "'",
        "\\",
        "1",
        "2.5",
        "1e9",
        "**",
        "//",
        "%",
        "*",
        "~",
        "<",
        "==",
        "is",
        "not",
        "and",
        "or",
        "defined",
        "string",
        "range",
        "namespace",
        "ns",
        "join",
        "map",
        "upper",
        "split",
        "list",
        "tojson",
        "replace",
        "format",
        "items",
        "raw",
        "endraw",
        "call",
        "endcall",
        "with",
        "endwith",
        "filter",
        "endfilter",
        "generation",
        "break",
        "loop",
        "index",
        "none",
        "true",
        "content",
        "🙂",
        "\n",
        " ",
        "slice",
        "strip",
        "sort",
        "indent",
        "center",
        "batch",
        "get",
        "title",
        "round",
    ];
    let word = prop_oneof![
        8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.join(" "))
}

/// Expressions that can be computed, most of them.
fn any_expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "c", "'ab c'", "'</t>'", "1", "-2", "2.5", "true", "none", "u", "[1, 'x']", "{'a': c}",
        "(1, 2)", "range(5)", "''", "'%s'", "'{}'", "1000000",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operators =
            vec!["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "and", "or"];
        let filters = vec![
            "trim",
            "upper",
            "title",
            "list",
            "join",
            "join('-')",
            "tojson",
            "tojson(indent=2)",
            "length",
            "string",
            "int",
            "float",
            "round",
            "reverse",
            "sort",
            "unique",
            "first",
            "last",
            "items",
            "replace('a', c)",
            "indent",
            "indent(3, true, true)",
            "map('upper')",
            "select",
            "batch(2)",
            "default(c)",
            "format(c)",
            "center(9)",
            "wordcount",
            "abs",
            "sum",
            "min",
            "e",
            "dictsort",
        ];
        let methods = vec![
            "strip()",
            "split()",
            "split('b')",
            "rsplit(' ', 1)",
            "splitlines()",
            "upper()",
            "replace('a', 'bb', 1)",
            "partition('b')",
            "find('b')",
            "get('a')",
            "items()",
            "zfill(9)",
            "rjust(9, '*')",
            "format(c, 1)",
            "startswith('a')",
            "capitalize()",
            "swapcase()",
            "join(c)",
            "casefold()",
            "removeprefix('a')",
            "index(1)",
            "count('a')",
            "ljust(4)",
            "a",
            "0",
        ];
        let slices =
            vec!["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[3:0:-2]", "[-5:9:3]", "['a']"];
        prop_oneof![
            (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            (inner.clone(), prop::sample::select(filters))
                .prop_map(|(a, f)| format!("({a} | {f})")),
            (inner.clone(), prop::sample::select(methods)).prop_map(|(a, m)| format!("({a}).{m}")),
            (inner.clone(), prop::sample::select(slices)).prop_map(|(a, s)| format!("({a}){s}")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_source_panics(source in any_source()) {
        let _ = rendered(&source, vec![("content", Value::text("x", Some(0)))]);
    }

    /// Content is marked by letters that templates have not; whatever comes out of it says so.
    #[test]
    fn no_expression_panics_or_forgets_whose_text_it_is(expression in any_expression()) {
        let variables = vec![("c", Value::text("ΑβΓ", Some(3)))];
        if let Ok(text) = rendered(&format!("{{{{ {expression} }}}}"), variables) {
            for (_, character, origin) in text.chars() {
                let greek = ('\u{370}'..='\u{3ff}').contains(&character);
                prop_assert!(!greek || origin == Some(3), "{}", with_origins(&text));
            }
        }
    }
}
