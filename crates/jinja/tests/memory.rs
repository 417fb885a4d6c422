//! A rendering takes a bounded amount of memory, whatever the template tries. A process of its own,
//! because it looks at the whole process.

#![cfg(target_os = "linux")]

use correx_jinja::{Fuel, Template};

/// The most memory that this process ever had, in kilobytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process has a status");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("it says its peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn no_template_takes_more_memory_than_its_fuel_pays_for() {
    let many = "{% set x = 'ab' * 50000 %}{% for i in range(1000) %}{% set y = x.split('b') %}{% endfor %}";
    let bombs = [
        "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% for a in range(100000) %}{{ 'x' * 10000 }}{% endfor %}",
        "{{ ('a' * 100000).replace('a', 'b' * 1000) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = ns.x + ['a'] %}{% endfor %}",
        "{% set ns = namespace(x=none) %}{% for i in range(100000) %}{% set ns.x = namespace(x=ns.x) %}{% endfor %}",
        "{{ ('x' * 1000000) | list | map('upper') | list }}",
        "{{ ('é' * 300000)[::-1] | list | length }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [i, 'a', {'b': i}] %}{{ ns.x }}{% endfor %}",
        "{% for i in range(100000) %}{% macro m() %}{% endmacro %}{% endfor %}",
        "{% set ns = namespace(x='') %}{% for i in range(100000) %}{% set ns.x = ns.x ~ 'a' ~ c %}{% endfor %}",
        many,
    ];
    let before = peak();
    for bomb in bombs {
        let template = Template::parse(bomb).expect("it is a template");
        let content = correx_jinja::Value::text("b", Some(1));
        let _ =
            template.render(vec![("c", content)], &Fuel::new(4_000_000), &|_| Ok(String::new()));
        let grown = peak() - before;
        assert!(grown < 64 << 10, "{grown} kilobytes: {bomb}");
    }
}
