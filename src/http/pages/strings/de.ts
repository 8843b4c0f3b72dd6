// The strings of all pages in German. Without one of them, this file does not compile.
import { abuseDe } from './abuse-de.ts'
import type { Strings } from './en.ts'

const dateRule = 'Wählen Sie ein Datum ab morgen, höchstens 3650 Tage ab heute.'
const retryIsUseless = 'Dieselbe Anfrage führt immer zu derselben Antwort.'

/** German. */
export const de: Strings = {
  language: 'de',
  locale: 'de-DE',
  layout: {
    skip: 'Zum Inhalt springen',
    site: 'Website',
    tagline: 'Kurzlinks, die ihr Ziel nie ändern.',
    reference: 'API-Referenz (Englisch)',
    reportAbuse: 'Missbrauch melden',
  },
  home: {
    title: 'Curtail – Kurzlink erstellen',
    faultyTitle: 'Noch kein Link erstellt – Curtail',
    createdTitle: 'Ihr Kurzlink – Curtail',
    heading: 'Kurzlink erstellen',
    lead: 'Fügen Sie einen Link ein. Der Kurzlink dazu führt immer zum selben Ziel.',
    keyLead: 'Jeder Kurzlink führt immer zum selben Ziel.',
    keyRequired:
      'Dieser Dienst erstellt Links nur für Programme, die im Header `X-API-Key` einen ' +
      'API-Schlüssel senden. Schlüssel vergibt der Betreiber des Dienstes.',
    optional: 'optional',
    longUrl: 'Langer Link',
    longUrlHint: 'Ohne http:// oder https:// ergänzt das Formular https://',
    alias: 'Alias',
    aliasHint: 'Bis zu 10 Zeichen: a-z, A-Z, 0-9, - oder _. Ohne Angabe wählt der Dienst.',
    suggestion: 'Vielleicht noch frei:',
    useSuggestion: 'Übernehmen',
    expiry: 'Läuft ab',
    days: {
      '': 'nie',
      1: 'in 1 Tag',
      7: 'in 7 Tagen',
      30: 'in 30 Tagen',
      365: 'in 1 Jahr (365 Tage)',
      date: 'an einem Datum …',
    },
    date: 'Datum des Ablaufs',
    expiryHint: 'Die Uhrzeit ist die der Erstellung; ein Datum gilt in UTC.',
    submit: 'Erstellen',
    recent: 'Letzte Links dieses Browsers',
    recentHint: 'Die letzten 20 Links; nur dieser Browser speichert die Liste.',
    clear: 'Liste leeren',
    cleared: 'Die Liste der letzten Links ist leer.',
  },
  result: {
    heading: 'Ihr Kurzlink ist fertig',
    target: 'Ziel:',
    expiry: 'Läuft ab:',
    never: 'nie',
    copy: 'Kopieren',
    share: 'Teilen',
    qr: 'QR-Code des Kurzlinks',
    download: 'QR-Code herunterladen',
  },
  faults: {
    required: 'Der lange Link fehlt.',
    'too-long': 'Der lange Link ist zu lang: Höchstens 2048 Zeichen sind erlaubt.',
    'surrounding-space': 'Vor und nach dem langen Link darf kein Leerraum stehen.',
    'not-absolute-http':
      'Der lange Link ist keine Webadresse wie https://example.com/seite: Er muss mit http:// ' +
      'oder https:// und einem Host anfangen.',
    'not-a-url': 'Der lange Link hat keinen gültigen Host wie example.com.',
    credentials: 'Der lange Link darf weder Benutzernamen noch Passwort enthalten.',
    'own-host': 'Der lange Link darf kein Link dieses Dienstes sein.',
    'target-blocked': 'Der Betreiber dieses Dienstes sperrt dieses Ziel.',
    malformed: 'Der Alias muss aus 1 bis 10 der Zeichen 0-9, A-Z, a-z, _ und - bestehen.',
    reserved: 'Der Alias {alias} ist für den Dienst selbst reserviert: Wählen Sie einen anderen.',
    'alias-taken': 'Der Alias {alias} ist schon vergeben: Wählen Sie einen anderen.',
    'invalid-type': dateRule,
    'out-of-range': dateRule,
    duplicate: 'Dieses Feld darf nur einmal vorkommen.',
  },
  messages: {
    'rate-limited':
      'Zu viele Anfragen. Bitte warten Sie {seconds} s, und versuchen Sie es dann noch einmal.',
    'pool-empty':
      'Im Moment ist kein Code verfügbar. Bitte versuchen Sie es gleich noch einmal, oder wählen ' +
      'Sie einen Alias.',
    'store-unavailable':
      'Der Link konnte nicht bestätigt werden. Bitte versuchen Sie es gleich noch einmal. Ist ' +
      'der Alias dann vergeben, gehört er vielleicht schon zu Ihrem Link.',
    'body-too-large': 'Das Formular ist zu groß: Erlaubt sind höchstens 16 KiB.',
    'request-timeout':
      'Das Formular wurde zu langsam übertragen. Bitte versuchen Sie es noch einmal.',
    'malformed-form': 'Das Formular ist nicht in UTF-8 kodiert.',
    'unknown-field': 'Das Formular hat ein unbekanntes Feld. Bitte laden Sie die Seite neu.',
    internal:
      'Im Dienst ist ein unerwarteter Fehler aufgetreten. Bitte versuchen Sie es gleich noch ' +
      'einmal.',
  },
  script: {
    submitting: 'Wird erstellt …',
    ready: 'Ihr Kurzlink ist fertig: {url}',
    copied: 'Kopiert',
    copiedStatus: 'Der Kurzlink wurde kopiert.',
    selected: 'Markiert',
    selectedStatus: 'Der Kurzlink ist markiert: Kopieren Sie ihn mit der Tastatur.',
    notShared: 'Der Kurzlink konnte nicht geteilt werden. Bitte kopieren Sie ihn.',
    noResponse:
      'Keine Antwort: Vielleicht ist die Verbindung unterbrochen. Bitte versuchen Sie es noch ' +
      'einmal; dabei entsteht kein zweiter Link.',
    unconfirmed:
      'Der Link konnte nicht bestätigt werden. Bitte versuchen Sie es gleich noch einmal; dabei ' +
      'entsteht kein zweiter Link.',
    failed: 'Der Dienst hat mit dem Status {status} geantwortet.',
    free: 'Der Alias {alias} ist wahrscheinlich noch frei.',
    suggested: 'Vielleicht noch frei: {alias}',
    expires: 'Bis {instant}',
    expiresNever: 'Der Link läuft nie ab.',
    chooseDate:
      'Wählen Sie ein Datum ab morgen: Der Link läuft an diesem Tag zu der Uhrzeit ab, zu der ' +
      'Sie ihn erstellen.',
    recentQr: 'QR-Code',
    recentExpires: 'Läuft ab:',
    recentExpired: 'Abgelaufen:',
    retryAt: 'Zu viele Anfragen. Bitte versuchen Sie es ab {instant} noch einmal.',
  },
  abuse: abuseDe,
  notFound: {
    title: 'Hier ist nichts – Curtail',
    heading: 'Hier ist nichts',
    meaning:
      'Kein Kurzlink hat diese Adresse. Vielleicht ist der Link abgelaufen oder entfernt, oder ' +
      'in der Adresse fehlt ein Zeichen.',
    advice:
      'Bei Kurzlinks zählt Groß- und Kleinschreibung: Bitte vergleichen Sie die Adresse mit dem ' +
      'Link, den Sie bekommen haben.',
  },
  blocked: {
    title: 'Gesperrt – Curtail',
    heading: 'Dieser Link ist gesperrt',
    410: 'Der Betreiber dieses Dienstes sperrt das Ziel dieses Links.',
    451: 'Der Betreiber dieses Dienstes sperrt das Ziel dieses Links aus rechtlichen Gründen.',
  },
  problem: {
    eyebrow: 'Problemtyp',
    name: 'Name',
    status: 'Status',
    type: 'Typ',
    document:
      'Ein Dokument dieses Typs enthält in `detail` eine Beschreibung des Fehlers und in ' +
      '`request_id` die Kennung der Anfrage in den Logs. Geben Sie die `request_id` an, wenn Sie ' +
      'ein Problem melden.',
    all: 'Alle Problemtypen (Englisch)',
  },
  problems: {
    'malformed-json': {
      title: 'Der Body ist kein JSON',
      meaning: `Der Body konnte nicht als JSON in UTF-8 gelesen werden. ${retryIsUseless}`,
    },
    'bad-request': {
      title: 'Die Anfrage ist kein HTTP',
      meaning: `Die Anfrage ist kein gültiges HTTP: In detail steht die Ursache. ${retryIsUseless}`,
    },
    unauthorized: {
      title: 'Die Admin-API verlangt ihr Token',
      meaning:
        'Senden Sie das Token aus ADMIN_TOKEN als Authorization: Bearer. Nur der Admin-Port ' +
        'antwortet so.',
    },
    'api-key-required': {
      title: 'Zum Erstellen ist ein API-Schlüssel nötig',
      meaning:
        'Nichts wurde gespeichert. Senden Sie im Header X-API-Key einen gültigen API-Schlüssel ' +
        'dieses Dienstes. Schlüssel können ablaufen und widerrufen werden.',
    },
    forbidden: {
      title: 'Die Admin-API ist nicht für Webseiten',
      meaning:
        'Ohne ADMIN_TOKEN dient die Admin-API Programmen auf ihrem Rechner, nicht Seiten in ' +
        'einem Browser.',
    },
    'not-found': {
      title: 'Hier ist nichts',
      meaning:
        'Unter diesem Pfad ist nichts: Kein Link hat diesen Code, oder der Link ist abgelaufen, ' +
        'deaktiviert oder gelöscht, oder sein Ziel ist gesperrt. Die Antwort verrät nicht, was ' +
        'davon zutrifft.',
    },
    'method-not-allowed': {
      title: 'Diese Methode ist hier nicht erlaubt',
      meaning:
        'Den Pfad gibt es, aber nicht mit dieser Methode. Der Header Allow nennt die erlaubten.',
    },
    'request-timeout': {
      title: 'Die Anfrage hat zu lange gedauert',
      meaning:
        'Die ganze Anfrage muss innerhalb von Sekunden ankommen. Senden Sie sie noch einmal, ' +
        'ohne Pausen.',
    },
    'alias-taken': {
      title: 'Der Alias ist vergeben',
      meaning:
        'Ein anderer Link hat diesen Alias. Nichts wurde gespeichert. Wählen Sie einen anderen, ' +
        'oder lassen Sie ihn weg.',
    },
    'link-blocked': {
      title: 'Das Ziel des Links ist gesperrt',
      meaning:
        'Der Betreiber dieses Dienstes sperrt das Ziel dieses Links. Der Link selbst ist ' +
        'unverändert.',
    },
    'body-too-large': {
      title: 'Der Body ist zu groß',
      meaning:
        'Ein Body darf höchstens 16 KiB haben, ein Teil eines Imports höchstens 2 MiB. ' +
        retryIsUseless,
    },
    'unsupported-media-type': {
      title: 'Der Body hat einen anderen Typ',
      meaning:
        'Der Pfad nimmt diesen Content-Type nicht an, oder der Body hat eine Inhaltskodierung ' +
        `(Content-Encoding). In detail steht, was erlaubt ist. ${retryIsUseless}`,
    },
    'invalid-request': {
      title: 'Ein Feld verletzt seine Regel',
      meaning: 'Die Liste errors nennt das Feld, als JSON-Zeiger in den Body, und was erlaubt ist.',
    },
    'idempotency-key-reused': {
      title: 'Der Idempotency-Key gehört zu einem anderen Body',
      meaning:
        'Ein Schlüssel gehört 24 Stunden lang zu seinem ersten gültigen Body. Nehmen Sie für ' +
        'eine neue Anfrage einen neuen Schlüssel.',
    },
    'target-blocked': {
      title: 'Das Ziel ist gesperrt',
      meaning: `Der Betreiber dieses Dienstes sperrt den Host oder die URL. ${retryIsUseless}`,
    },
    'rate-limited': {
      title: 'Zu viele Anfragen',
      meaning:
        'Ein Limit ist aufgebraucht; rule nennt es. Warten Sie die Sekunden aus Retry-After ab. ' +
        'Die X-RateLimit-Header der Antworten melden, was übrig ist.',
    },
    'headers-too-large': {
      title: 'Die Header sind zu groß',
      meaning: 'Anfragezeile und Header dürfen zusammen höchstens 16 KiB haben. ' + retryIsUseless,
    },
    'unavailable-for-legal-reasons': {
      title: 'Das Ziel des Links ist aus rechtlichen Gründen gesperrt',
      meaning:
        'Der Betreiber dieses Dienstes sperrt das Ziel dieses Links, wie das Gesetz es verlangt. ' +
        'Der Link selbst ist unverändert.',
    },
    internal: {
      title: 'Interner Fehler',
      meaning:
        'Im Dienst ist ein unerwarteter Fehler aufgetreten. Er steht mit der request_id in den ' +
        'Logs.',
    },
    'pool-empty': {
      title: 'Kein erzeugter Code ist übrig',
      meaning:
        'Codes werden gerade erzeugt. Warten Sie die Sekunden aus Retry-After ab; eigene Aliase ' +
        'funktionieren weiterhin.',
    },
    'store-unavailable': {
      title: 'Der Speicher ist nicht erreichbar',
      meaning:
        'Der Speicher ist nicht erreichbar, oder das Ergebnis ist unbekannt. Warten Sie die ' +
        'Sekunden aus Retry-After ab; mit demselben Idempotency-Key entsteht kein zweiter Link.',
    },
    unavailable: {
      title: 'Der Dienst ist nicht erreichbar',
      meaning:
        'Kein Dienst hinter dem Edge hat rechtzeitig geantwortet. Warten Sie die Sekunden aus ' +
        'Retry-After ab.',
    },
  },
}
