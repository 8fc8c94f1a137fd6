//! A tiny deterministic model for the product's demonstration: it reads the request and nothing else.
//!
//! It suggests what it is asked to remember, answers from what stands in the system text, and says how much of the
//! conversation it was shown. It must never answer from anything but the request.

use serde_json::{Value, json};

use super::reply::Reply;
use super::{Api, RecordedRequest};

/// The tool through which a memory change is suggested.
const MEMORY_TOOL: &str = "request_memory_change";
/// What introduces something to be remembered.
const REMEMBER: &str = "please remember that ";
/// How the place where somebody lives is written into the memory.
const LIVES_IN: &str = "Lives in ";

/// Answers a request; fit for [`super::ModelServer::set_default_reply`].
#[must_use]
pub fn demo_brain(request: &RecordedRequest) -> Reply {
    let view = View::of(request);
    let said = view.user_texts.last().map_or("", String::as_str);
    if let Some(fact) = after_ignoring_case(said, REMEMBER) {
        return remember(&view, fact);
    }
    if after_ignoring_case(said, "where do I live").is_some() {
        let place = view.system.rfind(LIVES_IN).map(|at| &view.system[at + LIVES_IN.len()..]);
        let place = place.map(|rest| rest.lines().next().unwrap_or("").trim().trim_end_matches('.'));
        return Reply::Text(match place {
            Some(place) if !place.is_empty() => format!("In {place}."),
            _ => "I don't know that yet.".to_owned(),
        });
    }
    let earlier = view.user_texts.len().saturating_sub(1);
    Reply::Text(match earlier {
        0 => "Hello! This is the first thing you tell me here.".to_owned(),
        1 => "I'm here. I see one earlier message of yours in this conversation.".to_owned(),
        count => format!("I'm here. I see {count} earlier messages of yours in this conversation."),
    })
}

fn remember(view: &View, fact: &str) -> Reply {
    let fact = fact.lines().next().unwrap_or("").trim().trim_end_matches(['.', '!']);
    if fact.is_empty() {
        return Reply::Text("What would you like me to remember?".to_owned());
    }
    if !view.tools.iter().any(|tool| tool == MEMORY_TOOL) {
        return Reply::Text("I can't suggest a memory change in this conversation.".to_owned());
    }
    Reply::call(
        MEMORY_TOOL,
        json!({
            "operation": "append",
            "proposed_text": format!("- {}.", about_the_person(fact)),
            "reason": "The person asked to have this remembered.",
            "evidence_event_ids": [],
        }),
    )
}

/// What somebody says of themselves, as a note about them: "I moved to X" becomes "Lives in X".
fn about_the_person(fact: &str) -> String {
    const OPENINGS: [(&str, &str); 11] = [
        ("I moved to ", LIVES_IN),
        ("I have moved to ", LIVES_IN),
        ("I live in ", LIVES_IN),
        ("I now live in ", LIVES_IN),
        ("I am ", "Is "),
        ("I'm ", "Is "),
        ("I was ", "Was "),
        ("I have ", "Has "),
        ("I do ", "Does "),
        ("I don't ", "Does not "),
        ("my ", ""),
    ];
    for (opening, instead) in OPENINGS {
        if let Some(rest) = strip_ignoring_case(fact, opening) {
            return capitalized(&format!("{instead}{rest}"));
        }
    }
    let Some(rest) = strip_ignoring_case(fact, "I ") else { return capitalized(fact) };
    let (verb, rest) = rest.split_once(' ').map_or((rest, ""), |(verb, rest)| (verb, rest));
    let ending = match verb {
        _ if verb.ends_with("ed") => "",
        _ if ["s", "x", "ch", "sh", "o"].iter().any(|ending| verb.ends_with(ending)) => "es",
        _ => "s",
    };
    capitalized(format!("{verb}{ending} {rest}").trim_end())
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

fn strip_ignoring_case<'a>(text: &'a str, opening: &str) -> Option<&'a str> {
    let head = text.get(..opening.len())?;
    head.eq_ignore_ascii_case(opening).then(|| &text[opening.len()..])
}

fn after_ignoring_case<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    // Lowering ASCII alone keeps every byte position.
    let at = text.to_ascii_lowercase().find(&phrase.to_ascii_lowercase())?;
    Some(&text[at + phrase.len()..])
}

/// What the brain reads of a request, whichever API it came by.
struct View {
    system: String,
    user_texts: Vec<String>,
    tools: Vec<String>,
}

impl View {
    fn of(request: &RecordedRequest) -> Self {
        let messages = request.json["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let of_role = |wanted: &[&str]| {
            let said = messages
                .iter()
                .filter(|message| message["role"].as_str().is_some_and(|role| wanted.contains(&role)));
            said.map(|message| joined_text(&message["content"])).filter(|text| !text.is_empty()).collect()
        };
        let system: Vec<String> = match request.api {
            Api::OpenAi => of_role(&["system", "developer"]),
            Api::Anthropic | Api::Other => vec![joined_text(&request.json["system"])],
        };
        let tools = request.json["tools"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let names = tools.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()));
        Self {
            system: system.join("\n"),
            user_texts: of_role(&["user"]),
            tools: names.map(str::to_owned).collect(),
        }
    }
}

/// The text of a content, which is text or a list of parts; parts of other kinds count for nothing.
fn joined_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts =
                parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::about_the_person;

    #[test]
    fn notes_are_about_the_person() {
        for (said, noted) in [
            ("I moved to Lisbon", "Lives in Lisbon"),
            ("i live in São Paulo", "Lives in São Paulo"),
            ("I'm allergic to nuts", "Is allergic to nuts"),
            ("I like tea", "Likes tea"),
            ("I watch birds", "Watches birds"),
            ("I played chess", "Played chess"),
            ("my sister is called Ana", "Sister is called Ana"),
            ("the plumber comes on Tuesdays", "The plumber comes on Tuesdays"),
            ("I sing", "Sings"),
            ("étés are long", "Étés are long"),
        ] {
            assert_eq!(about_the_person(said), noted);
        }
    }
}
