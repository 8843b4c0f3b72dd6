// The strings of the page on which people report abuse, in German.
import type { abuseEn } from './abuse-en.ts'

/** A report of abuse: its form, its faults and its confirmation. */
export const abuseDe: typeof abuseEn = {
  title: 'Missbrauch melden – Curtail',
  faultyTitle: 'Noch nicht gemeldet – Curtail',
  reportedTitle: 'Gemeldet – Curtail',
  heading: 'Missbrauch melden',
  lead:
    'Melden Sie einen Kurzlink, der zu schädlichen Inhalten führt. Der Betreiber liest jede ' +
    'Meldung.',
  link: 'Kurzlink',
  linkHint: 'Der vollständige Kurzlink oder nur der Code an seinem Ende.',
  reason: 'Grund',
  reasonHint: 'Wofür der Link verwendet wird.',
  choose: 'Grund auswählen',
  reasons: {
    phishing: 'Phishing: ahmt eine andere Website nach',
    malware: 'Malware: verbreitet Schadsoftware',
    spam: 'Spam: wird in unerwünschten Nachrichten verschickt',
    illegal: 'Rechtswidrige Inhalte',
    other: 'Sonstiges',
  },
  details: 'Einzelheiten',
  detailsHint: 'Woher Sie den Link haben oder was sich dahinter verbirgt: bis zu {max} Zeichen.',
  contact: 'Ihre E-Mail-Adresse',
  contactHint:
    'Nur für Rückfragen des Betreibers. Sie wird nach 90 Tagen zusammen mit der Meldung gelöscht.',
  submit: 'Link melden',
  reported: 'Danke für Ihre Meldung',
  number: 'Ihre Meldung hat die Nummer `{id}`. Bewahren Sie sie für Rückfragen auf.',
  next:
    'Der Betreiber dieses Dienstes liest Ihre Meldung und deaktiviert den Link, falls dieser ' +
    'schädlich ist.',
  another: 'Einen weiteren Link melden',
  faults: {
    linkRequired:
      'Der Link fehlt: Geben Sie einen Kurzlink von {hosts} an oder nur dessen Code: 1 bis 10 ' +
      'der Zeichen a-z, A-Z, 0-9, - und _.',
    link:
      'Geben Sie einen Kurzlink von {hosts} an oder nur dessen Code: 1 bis 10 der Zeichen a-z, ' +
      'A-Z, 0-9, - und _.',
    reason: 'Wählen Sie einen der Gründe aus.',
    detailsLength:
      'Die Einzelheiten dürfen höchstens {max} Zeichen lang sein, es sind aber {length}.',
    detailsControl: 'Die Einzelheiten dürfen keine Steuerzeichen enthalten.',
    contact:
      'Geben Sie eine E-Mail-Adresse mit höchstens {max} Zeichen an, oder lassen Sie das Feld ' +
      'leer.',
  },
  messages: {
    fields:
      'Das Formular muss die Felder link, reason, details und contact enthalten, jedes genau ' +
      'einmal.',
    anotherSite:
      'Dieses Formular wurde von einer anderen Website abgeschickt: Prüfen Sie es, und schicken ' +
      'Sie es dann von dieser Seite aus ab.',
    full:
      'Dieser Dienst speichert höchstens {max} Meldungen pro Tag (UTC), und dieses Limit ist ' +
      'erreicht. Die Meldung wurde nicht gespeichert: Bitte versuchen Sie es morgen noch einmal.',
    busy:
      'Im Moment gehen zu viele Meldungen ein. Ihre wurde nicht gespeichert: Bitte versuchen ' +
      'Sie es noch einmal.',
    'not-done':
      'Die Datenbank ist nicht erreichbar, und die Meldung wurde nicht gespeichert: Bitte ' +
      'versuchen Sie es noch einmal.',
    unknown:
      'Die Datenbank hat nicht geantwortet. Ob die Meldung gespeichert wurde, ist nicht ' +
      'bekannt: Bitte versuchen Sie es noch einmal.',
  },
}
