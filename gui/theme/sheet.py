"""One style sheet and one QPalette, made from the palette in use. Fonts are set on widgets, never here."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from gui.theme.look import Look

_SHEET = """
QMainWindow, QDialog, #canvas {{ background: {canvas}; }}
QLabel {{ background: transparent; color: {text}; }}
QLabel[ink="text2"] {{ color: {text2}; }}
QLabel[ink="text3"] {{ color: {text3}; }}
QLabel[ink="accent"] {{ color: {accent}; }}
QLabel[ink="ok"] {{ color: {ok}; }}
QLabel[ink="warn"] {{ color: {warn}; }}
QLabel[ink="trouble"] {{ color: {trouble}; }}
#topbar {{ background: {surface}; border-bottom: 1px solid {hair}; }}
#statusbar {{ background: {surface}; border-top: 1px solid {hair}; }}
#navigation {{ background: {canvas}; border-right: 1px solid {hair}; }}
#rule {{ background: {hair}; border: none; }}
#card {{ background: {surface}; border: 1px solid {hair}; border-radius: 10px; }}
#bigcard {{ background: {surface}; border: 1px solid {hair}; border-radius: 12px; }}
#dialog {{ background: {raised}; border: 1px solid {hair}; border-radius: 12px; }}
#search {{ background: {canvas}; border: 1px solid {hair}; border-radius: 6px; }}
#search:hover {{ background: {sunken}; }}
#keycap {{ background: {surface}; border: 1px solid {hair}; border-radius: 4px; color: {text2}; padding: 0 5px; }}
#softsquare {{ background: {accent_soft}; border-radius: 6px; }}
#softsquare[grade="warn"] {{ background: {warn_soft}; }}
#softsquare[grade="trouble"] {{ background: {trouble_soft}; }}
#ask {{ background: {raised}; }}
#facts {{ background: {sunken}; border: 1px solid {hair}; border-radius: 8px; }}
#sunken {{ background: {sunken}; border-radius: 6px; }}
#banner {{ border-radius: 8px; }}
#banner[grade="trouble"] {{ background: {trouble_soft}; border: 1px solid {trouble_edge}; }}
#banner[grade="warn"] {{ background: {warn_soft}; border: 1px solid {warn_edge}; }}
#banner[grade="info"] {{ background: {accent_soft}; border: 1px solid {accent_edge}; }}
QPushButton {{ border-radius: 6px; padding: 0 14px; color: {text}; background: {raised};
  border: 1px solid {edge}; }}
QPushButton:hover {{ background: {plain_hover}; }}
QPushButton:pressed {{ background: {sunken}; }}
QPushButton:disabled {{ color: {text3}; border-color: {hair}; background: transparent; }}
QPushButton[kind="filled"] {{ background: {accent}; color: {on_accent}; border: 1px solid {accent}; }}
QPushButton[kind="filled"]:hover {{ background: {accent_hover}; border-color: {accent_hover}; }}
QPushButton[kind="filled"]:pressed {{ background: {accent_pressed}; border-color: {accent_pressed}; }}
QPushButton[kind="filled"]:disabled {{ background: {sunken}; color: {text3}; border-color: {hair}; }}
QPushButton[kind="delete"] {{ background: {trouble}; color: {on_trouble}; border: 1px solid {trouble}; }}
QPushButton[kind="delete"]:disabled {{ background: {sunken}; color: {text3}; border-color: {hair}; }}
QPushButton[kind="flat"] {{ background: transparent; border: 1px solid transparent; color: {text2}; }}
QPushButton[kind="flat"]:hover {{ background: {sunken}; }}
QPushButton[kind="link"] {{ background: transparent; border: none; color: {accent}; padding: 0;
  text-align: left; }}
QPushButton[kind="link"]:hover {{ color: {accent_hover}; }}
QPushButton[kind="tab"] {{ background: transparent; border: none; color: {text2}; padding: 0 11px; }}
QPushButton[kind="tab"]:hover {{ background: {sunken}; }}
QPushButton[kind="tab"]:checked {{ background: {accent_soft}; color: {accent}; }}
QPushButton[kind="row"] {{ background: transparent; border: none; padding: 0; border-radius: 6px; }}
QPushButton[kind="row"]:hover {{ background: {plain_hover}; }}
QPushButton[kind="row"]:pressed {{ background: {sunken}; }}
#segments {{ background: {canvas}; border: 1px solid {hair}; border-radius: 6px; }}
QPushButton[kind="segment"] {{ background: transparent; border: 1px solid transparent; color: {text2};
  padding: 0 10px; border-radius: 5px; }}
QPushButton[kind="segment"]:checked {{ background: {raised}; border: 1px solid {edge}; color: {text}; }}
QToolButton {{ background: transparent; border: none; border-radius: 6px; padding: 4px; color: {text2}; }}
QToolButton[framed="true"] {{ border: 1px solid {hair}; background: {surface}; }}
QToolButton:hover {{ background: {sunken}; }}
QComboBox {{ background: {field}; color: {text}; border: 1px solid {edge}; border-radius: 6px;
  padding: 0 2px 0 10px; }}
QComboBox::drop-down {{ border: none; width: 22px; }}
QLineEdit {{ background: {field}; color: {text}; border: 1px solid {edge}; border-radius: 6px; padding: 0 8px;
  selection-background-color: {accent}; selection-color: {on_accent}; }}
QComboBox:focus, QLineEdit:focus {{ border: 2px solid {accent}; }}
QLineEdit[wrong="true"], QLineEdit[wrong="true"]:focus, QComboBox[wrong="true"] {{ border: 2px solid {trouble}; }}
QLineEdit[cell="true"] {{ padding: 0 3px; border-radius: 4px; }}
QLineEdit:read-only {{ background: {canvas}; border-color: {hair}; }}
QComboBox QAbstractItemView {{ background: {raised}; color: {text}; border: 1px solid {hair};
  selection-background-color: {accent_soft}; selection-color: {text}; outline: 0; }}
QMenu {{ background: {raised}; color: {text}; border: 1px solid {hair}; padding: 4px; }}
QMenu::item {{ padding: 5px 24px 5px 12px; border-radius: 4px; }}
QMenu::item:selected {{ background: {accent_soft}; }}
QToolTip {{ background: {raised}; color: {text}; border: 1px solid {hair}; padding: 4px 6px; }}
QTableView, QListView, QPlainTextEdit {{ background: transparent; border: none; color: {text};
  selection-background-color: {accent_soft}; selection-color: {text}; gridline-color: {grid}; }}
QTableView {{ outline: 0; }}
QHeaderView {{ background: transparent; border: none; }}
QHeaderView::section {{ background: transparent; border: none; color: {text2}; }}
QScrollArea, #scrolled {{ background: transparent; border: none; }}
QGraphicsView {{ background: transparent; border: none; }}
QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
QScrollBar:horizontal {{ background: transparent; height: 10px; margin: 0; }}
QScrollBar::handle {{ background: {scroll}; border-radius: 3px; min-height: 28px; min-width: 28px;
  margin: 2px; }}
QScrollBar::handle:hover {{ background: {edge}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
"""


def dress(application: QApplication, look: Look) -> None:
    """Give the whole application this look."""
    application.setPalette(_palette(look))
    application.setFont(look.font())
    application.setStyleSheet(sheet(look))


def sheet(look: Look) -> str:
    """The style sheet in the palette in use."""
    tokens = dict(look.palette.tokens)
    tokens["plain_hover"] = tokens["sunken"] if look.palette.dark else tokens["canvas"]
    tokens["scroll"] = look.palette.mixed(tokens["edge"], 0.55)
    for grade in ("trouble", "warn", "accent"):
        tokens[f"{grade}_edge"] = look.palette.mixed(tokens[grade], 0.45)
    return _SHEET.format(**tokens)


def _palette(look: Look) -> QPalette:
    made = QPalette()
    roles = {
        QPalette.ColorRole.Window: "canvas",
        QPalette.ColorRole.WindowText: "text",
        QPalette.ColorRole.Base: "field",
        QPalette.ColorRole.AlternateBase: "canvas",
        QPalette.ColorRole.Text: "text",
        QPalette.ColorRole.Button: "raised",
        QPalette.ColorRole.ButtonText: "text",
        QPalette.ColorRole.ToolTipBase: "raised",
        QPalette.ColorRole.ToolTipText: "text",
        QPalette.ColorRole.PlaceholderText: "text3",
        QPalette.ColorRole.Highlight: "accent",
        QPalette.ColorRole.HighlightedText: "on_accent",
        QPalette.ColorRole.Link: "accent",
        QPalette.ColorRole.Mid: "edge",
        QPalette.ColorRole.Dark: "hair",
    }
    for role, token in roles.items():
        made.setColor(role, QColor(look.token(token)))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, role, QColor(look.token("text3")))
    return made
