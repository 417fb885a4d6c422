use correx_documents::Format;

use crate::read;

fn page(html: &str) -> String {
    let document = read("a.html", html).unwrap();
    assert_eq!(document.format, Format::Html);
    document.text
}

#[test]
fn headings_lists_links_and_tables_become_markdown() {
    let html = r#"<!DOCTYPE html><html><head><title>T</title><style>p { color: red }</style></head>
    <body><h1>Annual <em>report</em></h1><p>First   paragraph,
    <a href="https://example.org/x">a link</a> and <code>code</code>.<p>Second &amp; last.
    <h2>List</h2><ul><li>one<li>two<ul><li>inner</ul><li>three</ul><ol start=3><li>c</li><li>d</li></ol>
    <table><tr><th>Name</th><th>Sum | €</th></tr><tr><td>A<br>B</td><td>5</td></tr></table>
    <blockquote><p>Said.</p><p>Again.</p></blockquote><script>if (a < b) { "</p>" }</script>
    <pre>  x = 1
    y</pre>End.</body></html>"#;
    let expected = "# Annual report\n\n\
        First paragraph, [a link](https://example.org/x) and `code`.\n\n\
        Second & last.\n\n## List\n\n\
        - one\n- two\n  - inner\n- three\n\n3. c\n4. d\n\n\
        | Name | Sum \\| € |\n| --- | --- |\n| A B | 5 |\n\n\
        > Said.\n>\n> Again.\n\n\
        ```\n  x = 1\n    y\n```\n\nEnd.\n";
    assert_eq!(page(html), expected);
}

#[test]
fn a_title_stands_in_for_a_missing_heading() {
    assert_eq!(page("<title>A\n b</title><p>Text"), "# A b\n\nText\n");
    assert_eq!(page("<title>A</title><h1>B</h1>"), "# B\n");
}

#[test]
fn what_nobody_sees_is_dropped() {
    let html = "<body>a<div hidden>b<div>c</div></div><div style='display: none'>d</div>\
        <svg><text>e</text></svg><noscript>f</noscript><template><p>g</p></template>\
        <a href='javascript:x()'>h</a> <a href='#top'>i</a><!-- j --></body>";
    assert_eq!(page(html), "ah i\n");
}

#[test]
fn a_table_that_only_places_things_is_text() {
    assert_eq!(
        page("<table><tr><td><p>One</p></td></tr><tr><td>Two</td></tr></table>"),
        "One\n\nTwo\n"
    );
    assert_eq!(
        page(
            "<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table></td><td>d</td></tr>\
              <tr><td>e</td><td>f</td></tr></table>"
        ),
        "| a b c | d |\n| --- | --- |\n| e | f |\n"
    );
}

#[test]
fn nothing_is_lost_where_tags_are_not_closed_or_not_opened() {
    for html in [
        "<h1>A<p>B",
        "<pre>A B",
        "<table><tr><td>A<td>B",
        "</h1></td></pre>A B",
        "<a href=x>A B",
        "A</li></ul> B<li>",
    ] {
        let text = page(html);
        assert!(text.contains('A') && text.contains('B'), "{html}: {text}");
    }
}

#[test]
fn a_page_may_declare_its_encoding() {
    let bytes = b"<meta charset=\"windows-1251\"><p>\xCF\xF0\xE8\xE2\xE5\xF2".to_vec();
    let document = read("a.htm", bytes).unwrap();
    assert_eq!(document.text, "Привет\n");
    assert_eq!(document.notes, ["read as windows-1251"]);
}
