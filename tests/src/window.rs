//! The real window, driven through WebKitWebDriver. Linux only; the other platforms' web views have
//! drivers of their own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::json;

use crate::place;

/// How long anything but the model's work may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open window.
pub struct Window {
    /// The page in it.
    pub page: Client,
    driver: Driver,
}

struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Window {
    /// Opens the window on a data directory.
    ///
    /// # Panics
    /// When there is no display, no driver, or no window.
    pub async fn open(data: &Path) -> Self {
        let port = free_port();
        let driver = Command::new("WebKitWebDriver")
            .args([format!("--port={port}"), "--host=127.0.0.1".into()])
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .env("CORREX_DATA_DIR", data)
            .env("CORREX_MODEL", place::model())
            .env("XDG_DATA_HOME", data.join("xdg"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("WebKitWebDriver starts: `cargo xtask setup` installs it");
        let driver = Driver(driver);
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "WebKitWebDriver does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let capabilities = json!({
            "browserName": "wry",
            "webkitgtk:browserOptions": { "binary": place::program("correx-desktop"), "args": [] },
        });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities.as_object().cloned().unwrap_or_default());
        let address = format!("http://127.0.0.1:{port}");
        let connecting = builder.connect(&address);
        let page = tokio::time::timeout(PATIENCE, connecting)
            .await
            .expect("the window opens in time")
            .expect("the window opens");
        Self { page, driver }
    }

    /// The first element with this test id, waiting for it.
    pub async fn find(&self, id: &str) -> Element {
        self.css(&format!("[data-testid=\"{id}\"]"), PATIENCE).await
    }

    /// The first element that a selector finds, waiting for it.
    ///
    /// # Panics
    /// When it does not come, with what the window shows instead.
    pub async fn css(&self, selector: &str, patience: Duration) -> Element {
        let found = self.page.wait().at_most(patience).for_element(Locator::Css(selector)).await;
        match found {
            Ok(element) => element,
            Err(error) => {
                let body = self.page.find(Locator::Css("body")).await;
                let shown = match body {
                    Ok(body) => body.text().await.unwrap_or_default(),
                    Err(error) => error.to_string(),
                };
                panic!("no {selector} ({error}). The window shows:\n{shown}");
            }
        }
    }

    /// Clicks the first element with this test id.
    pub async fn click(&self, id: &str) {
        self.find(id).await.click().await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }

    /// Types into the first element with this test id.
    pub async fn write(&self, id: &str, text: &str) {
        let element = self.find(id).await;
        element.send_keys(text).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }

    /// How many elements a selector finds now.
    pub async fn count(&self, selector: &str) -> usize {
        self.page.find_all(Locator::Css(selector)).await.expect("the page answers").len()
    }

    /// The text of the first element that a selector finds now.
    pub async fn text(&self, selector: &str) -> String {
        match self.page.find(Locator::Css(selector)).await {
            Ok(element) => element.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// A picture of the page, as PNG, into `path`.
    pub async fn picture(&self, path: &Path) {
        let png = self.page.screenshot().await.expect("the page can be pictured");
        std::fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
        std::fs::write(path, png).expect("the picture can be written");
    }

    /// Closes the window.
    pub async fn close(self) {
        let Self { page, driver } = self;
        let _ = tokio::time::timeout(PATIENCE, page.close()).await;
        drop(driver);
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}
