/** What a broker answers in the place of a result. */
final class Refusal extends Exception {
    private static final long serialVersionUID = 1;

    final String error;

    Refusal(String error, String detail) {
        super(detail);
        this.error = error;
    }

    Refusal(String error, Throwable because) {
        super(because.toString(), because);
        this.error = error;
    }
}
