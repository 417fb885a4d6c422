//! E-mails of customers, of many shapes.

use crate::dice::Dice;

const SENDERS: &[&str] = &[
    "Clara Jensen",
    "José García",
    "Anne-Marie O'Neill",
    "Nguyễn Thị Hoa",
    "J. R. Smith",
    "Björk",
    "Łukasz Wójcik",
    "Mary Ann van der Berg",
    "Yusuf Çelik",
    "Dr. Ines Duarte",
    "Wei Zhang",
    "Ólafur Arnalds",
    "Priya Natarajan",
    "François L'Hôpital",
    "Bob Lee",
    "Tom McDonald",
];
const THINGS: &[&str] = &[
    "desk lamp",
    "oak table",
    "coffee machine",
    "bicycle",
    "garden hose",
    "USB-C cable",
    "winter coat",
    "set of 6 glasses",
    "printer",
    "season ticket",
];
const SUBJECTS: &[&str] = &[
    "Broken THING in order NUMBER",
    "Re: your invoice no. NUMBER",
    "Question about the THING",
    "Order: 2 x THING",
    "THING (2nd try)",
    "Where is my THING?",
    "URGENT!! order #NUMBER",
    "Refund of AMOUNT EUR",
    "Möchte eine THING bestellen",
    "Fwd: Re: delivery on DAY",
];
const OPENINGS: &[&str] =
    &["Hello,", "Dear Sir or Madam,", "Hi there!", "Good morning", "To whom it may concern:"];
const SENTENCES: &[&str] = &[
    "On DAY I ordered a THING for AMOUNT euros.",
    "The parcel came today, and the THING does not work.",
    "I have called your office three times and nobody answered.",
    "My customer number is NUMBER.",
    "Your shop was recommended to me by a friend who is very happy with it.",
    "The colour is not the one in your catalogue (page 14).",
    "It was a present for my daughter, who turned 9 last week.",
    "I paid AMOUNT euros by bank transfer, and the money has left my account.",
    "The instructions are only in Swedish; I could not find others on your web site.",
    "Otherwise I am content with the service.",
];
const REQUESTS: &[&str] = &[
    "Please send me a new THING before DAY.",
    "Could you tell me whether the THING is still available, and what the delivery costs?",
    "I would like to order two more of them to be delivered on DAY.",
    "Please give me my AMOUNT euros back.",
    "Can you send me a copy of invoice NUMBER?",
    "Please cancel the order at once!",
];
const ENDINGS: &[&str] = &["Kind regards", "Best,", "Yours sincerely", "Thanks & bye", "--"];
const DAYS: &[&str] = &["12 June", "3 March 2026", "Friday", "the 1st of May", "2026-09-30"];

/// An e-mail, always the same for the same number: 2 to 9 sentences, with and without headers.
pub(crate) fn mail(number: usize) -> String {
    let mut dice = Dice::new(1_000 + number);
    let sender = SENDERS[number % SENDERS.len()];
    let subject = SUBJECTS[(number / 3) % SUBJECTS.len()];
    let thing = dice.pick(THINGS);
    let mut lines = match dice.below(3) {
        0 => vec![format!("From: {sender}")],
        1 => vec![
            format!("From: {sender} <customer{number}@example.org>"),
            "To: info@example.com".into(),
        ],
        _ => vec![
            format!("From: {sender}"),
            "To: Customer service".into(),
            "Date: 3 June 2026".into(),
        ],
    };
    lines.push(format!("Subject: {subject}"));
    lines.extend([String::new(), dice.pick(OPENINGS).into(), String::new()]);
    let count = 1 + dice.below(7);
    let mut body = dice.several(SENTENCES, count).join(" ");
    body.push_str(if dice.below(2) == 0 { " " } else { "\n\n" });
    body.push_str(dice.pick(REQUESTS));
    lines.extend([body, String::new(), dice.pick(ENDINGS).into(), sender.into()]);
    if dice.below(4) == 0 {
        lines.extend(["".into(), "> Thank you for your order.".into(), "> Your shop team".into()]);
    }
    let amount = format!("{}.{:02}", 5 + dice.below(900), dice.below(100));
    let order = (1000 + dice.below(90_000)).to_string();
    let day = dice.pick(DAYS);
    let text = lines.join("\n").replace("THING", thing).replace("NUMBER", &order);
    text.replace("AMOUNT", &amount).replace("DAY", day) + "\n"
}

/// Who wrote the mail of that number.
pub(crate) fn sender(number: usize) -> &'static str {
    SENDERS[number % SENDERS.len()]
}
