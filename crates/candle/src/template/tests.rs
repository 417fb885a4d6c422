use correx_events::SystemClock;

use super::*;

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(Some(source), "<s>", "</s>", Arc::new(SystemClock))
}

fn said(role: Role, content: &str) -> TemplateMessage {
    TemplateMessage { role: role.as_str(), content: content.to_owned() }
}

#[test]
fn a_missing_template_is_replaced_by_chatml_with_a_notice() {
    let template = ChatTemplate::new(None, "", "", Arc::new(SystemClock));
    assert!(template.notice().unwrap().contains("no chat template"));
    assert_eq!(
        template.render(&[said(Role::System, "Be brief."), said(Role::User, "Hi")]).unwrap(),
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn broken_hostile_and_lossy_templates_are_replaced_not_obeyed() {
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let floods = "{% for a in range(1000) %}{{ 'x' * 1000000 }}{% endfor %}";
    for source in [
        "{% for message in messages %}",
        "{{ nothing.at.all }}",
        "{{ raise_exception('no') }}",
        "{% include '/etc/passwd' %}",
        "only this",
        "{{ messages[0].content }}",
        loops,
        floods,
        &"{{ (".repeat(1000),
    ] {
        let template = template(source);
        let start: String = source.chars().take(40).collect();
        assert!(template.notice().is_some(), "{start}");
        assert!(template.render(&[said(Role::User, "Hi")]).unwrap().contains("Hi"));
    }
}

#[test]
fn a_template_that_refuses_the_system_role_is_given_none() {
    let source = "{{ bos_token }}{% for m in messages %}\
        {% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}\
        [{{ m.role }}]{{ m.content | trim }}{{ eos_token }}{% endfor %}";
    let template = template(source);
    assert_eq!((template.notice(), template.system_role()), (None, SystemRole::Merged));
    let error = template.render(&[said(Role::System, "x")]).unwrap_err().to_string();
    assert!(error.contains("no system"), "{error}");
    assert_eq!(template.render(&[said(Role::User, " x ")]).unwrap(), "<s>[user]x</s>");
}

#[test]
fn what_python_templates_use_is_there() {
    let source = "{%- for m in messages -%}
    {%- if loop.index0 > 50 %}{% break %}{% endif -%}
    {{ m['content'].strip().replace('\n', ' ').startswith('probe') }} {{ m['content'] }}
{% endfor -%}
{{ {'a': [1, \"<b>\"], 'é': none} | tojson }}{{ [1] | tojson(indent=2) }}{{ strftime_now('%Y') }}\
{{ tools is none }}{{ undefined_thing is defined }}";
    let template = template(source);
    assert_eq!(template.notice(), None);
    let shown = template.render(&[said(Role::User, "x")]).unwrap();
    assert!(
        shown.starts_with("False x\n{\"a\": [1, \"<b>\"], \"é\": null}[\n  1\n]2")
            || shown.starts_with("false x\n{\"a\": [1, \"<b>\"], \"é\": null}[\n  1\n]2"),
        "{shown}"
    );
    assert!(shown.to_lowercase().ends_with("truefalse"), "{shown}");
}

#[test]
fn templates_that_can_switch_the_thinking_are_told_whether_to() {
    let source = "{% for m in messages %}{{ m.content }}{% endfor %}\
        {% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}\
        {{ enable_thinking | default('own way') }}";
    let template = template(source);
    let shown = |mode| template.render_for(&[said(Role::User, "x ")], mode).unwrap().to_lowercase();
    assert_eq!(shown(ThinkingMode::Auto), "x own way");
    assert_eq!(shown(ThinkingMode::Off), "x <think></think>false");
    assert_eq!(shown(ThinkingMode::On), "x true");
}
